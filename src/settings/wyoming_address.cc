#include "settings/wyoming_address.h"

#include <algorithm>
#include <arpa/inet.h>
#include <charconv>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/blanks.h"
#include "base/error.h"
#include "base/printable.h"

namespace shoal {
namespace settings {
namespace {

constexpr std::string_view kTcp = "tcp://", kUnix = "unix://";

bool is_port(std::string_view text) {
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc{} && end == text.data() + text.size();
}

bool is_ipv6(std::string_view text) {
  in6_addr address;
  return inet_pton(AF_INET6, std::string(text).c_str(), &address) == 1;
}

bool is_listen(const std::string& listen) {
  const size_t colon = listen.rfind(':');
  const std::string_view host = std::string_view(listen).substr(0, std::min(colon, listen.size()));
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  const bool plain = bracketed ? is_ipv6(host.substr(1, host.size() - 2))
                               : !host.empty() && host.find_first_of(":[]/@ ") == std::string_view::npos;
  return colon != std::string::npos && plain && is_port(std::string_view(listen).substr(colon + 1));
}

// Names other than localhost may lead anywhere.
bool is_this_machine(const std::string& listen) {
  const std::string host = listen.substr(0, listen.rfind(':'));
  in_addr address;
  if (inet_pton(AF_INET, host.c_str(), &address) == 1) return (ntohl(address.s_addr) >> 24) == 127;
  return host == "localhost" || host == "[::1]";
}

bool is_socket_path(std::string_view path) {
  constexpr size_t kRoom = sizeof(sockaddr_un::sun_path);  // with the zero at its end
  return path.size() > 1 && path.size() < kRoom && path.front() == '/' && path.back() != '/' &&
         path.find('\0') == std::string_view::npos;
}

WyomingAddress parse_one(std::string_view part) {
  WyomingAddress address;
  if (part.starts_with(kTcp)) {
    address.listen = part.substr(kTcp.size());
    if (is_listen(address.listen)) return address;
  } else if (part.starts_with(kUnix)) {
    address.path = part.substr(kUnix.size());
    if (is_socket_path(address.path)) return address;
  }
  fail(ErrorCode::invalid_argument,
       "wyoming: expected tcp://host:port or unix:///path (of at most 107 bytes) with commas between, got \"",
       printable(part), "\"");
}

}  // namespace

void check_listen(std::string_view field, const std::string& listen) {
  if (is_listen(listen)) return;
  fail(ErrorCode::invalid_argument, field, ": expected host:port or [v6]:port, got \"", printable(listen),
       "\"");
}

void check_wyoming(const ServerConfig& config) {
  const bool keys = !config.api_key.empty() || !config.api_key_file.empty();
  for (const WyomingAddress& address : parse_wyoming(config.wyoming)) {
    if (!keys || config.wyoming_without_key || !address.path.empty() || is_this_machine(address.listen))
      continue;
    fail(ErrorCode::invalid_argument, "wyoming: everybody who reaches tcp://", address.listen,
         " could speak without the API key, for the protocol has none; listen at 127.0.0.1 or a UNIX socket, "
         "or set wyoming_without_key");
  }
}

}  // namespace settings

std::vector<WyomingAddress> parse_wyoming(std::string_view list) {
  std::vector<WyomingAddress> addresses;
  if (without_blanks(list).empty()) return addresses;
  while (true) {
    const size_t comma = std::min(list.find(','), list.size());
    const std::string_view part = without_blanks(list.substr(0, comma));
    WyomingAddress address = settings::parse_one(part);
    const bool any_port = address.path.empty() && address.listen.ends_with(":0");
    const auto same = [&](const WyomingAddress& other) {
      return other.listen == address.listen && other.path == address.path;
    };
    if (!any_port && std::ranges::any_of(addresses, same))
      fail(ErrorCode::invalid_argument, "wyoming: \"", printable(part), "\" stands there twice");
    addresses.push_back(std::move(address));
    if (comma == list.size()) return addresses;
    list.remove_prefix(comma + 1);
  }
}

}  // namespace shoal
