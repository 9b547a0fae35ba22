#include "server/http/web_socket.h"

#include <boost/asio/append.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/core/role.hpp>

#include "server/http/web_socket_session.h"

namespace shoal::server {

// What Beast calls when a WebSocket has ended: its connection ends the channel.
void teardown(boost::beast::role_type, Channel&, boost::system::error_code& error) { error = {}; }

template <typename Handler>
void async_teardown(boost::beast::role_type, Channel& channel, Handler&& handler) {
  boost::asio::post(channel.get_executor(),
                    boost::asio::append(std::forward<Handler>(handler), boost::system::error_code()));
}

void beast_close_socket(Channel& channel) { channel.close(); }

std::unique_ptr<ServedWebSocket> make_web_socket(Channel& channel, const Request& request,
                                                 const WebSocketLimits& limits, BodyBudget& budget) {
  return std::make_unique<WebSocketSession<Channel>>(channel, request, limits, budget);
}

}  // namespace shoal::server
