// Notices that a client has left while nothing is read from it.
#pragma once

#include <boost/asio/basic_waitable_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>

#include "server/http/channel.h"

namespace shoal::server {

// The end, a reset and a half-close all count as leaving, and are noticed within a millisecond; if unread
// bytes are in the way (a pipelined request, the closing message of TLS), within 100.
class DisconnectWatcher : public std::enable_shared_from_this<DisconnectWatcher> {
 public:
  // `gone` is called at most once, from the socket's thread. The socket must stay until stop().
  DisconnectWatcher(Socket& socket, std::function<void()> gone);

  void start() { wait(); }
  // Cancels operations that wait for the socket.
  void stop();

 private:
  void wait();
  void look();
  void look_again();

  Socket& socket_;
  std::function<void()> gone_;  // empty: stopped
  boost::asio::basic_waitable_timer<std::chrono::steady_clock,
                                    boost::asio::wait_traits<std::chrono::steady_clock>, Executor>
      timer_;
  std::chrono::milliseconds pause_;
};

}  // namespace shoal::server
