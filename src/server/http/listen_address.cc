#include "server/http/listen_address.h"

#include <boost/asio/io_context.hpp>
#include <charconv>
#include <string_view>

#include "base/error.h"

namespace shoal::server {
namespace {

namespace asio = boost::asio;

[[noreturn]] void refuse(const std::string& listen) {
  fail(ErrorCode::invalid_argument,
       "listen: expected host:port or [v6]:port with a port of 0 to 65535, got \"", listen, "\"");
}

uint16_t parse_port(std::string_view text, const std::string& listen) {
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size()) refuse(listen);
  return port;
}

}  // namespace

asio::ip::tcp::endpoint parse_listen_address(const std::string& listen) {
  const size_t colon = listen.rfind(':');
  if (colon == std::string::npos || colon == 0) refuse(listen);
  std::string host = listen.substr(0, colon);
  const uint16_t port = parse_port(std::string_view(listen).substr(colon + 1), listen);
  const bool bracketed = host.starts_with('[') && host.ends_with(']');
  if (bracketed) host = host.substr(1, host.size() - 2);

  boost::system::error_code error;
  const asio::ip::address address = asio::ip::make_address(host, error);
  if (!error) {
    if (address.is_v6() != bracketed) refuse(listen);
    return {address, port};
  }
  if (bracketed || host.find_first_of(":[]/ ") != std::string::npos) refuse(listen);
  asio::io_context context;
  const auto found = asio::ip::tcp::resolver(context).resolve(host, "", error);
  if (error || found.empty()) fail(ErrorCode::io, "listen: ", host, ": ", error.message());
  return {found.begin()->endpoint().address(), port};
}

}  // namespace shoal::server
