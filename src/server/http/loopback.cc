#include "server/http/loopback.h"

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <string>

#include "server/http/message.h"

namespace shoal::server {

std::string_view host_of(std::string_view authority) {
  if (authority.starts_with('[')) return authority.substr(0, authority.find(']') + 1);
  return authority.substr(0, authority.find(':'));
}

bool is_loopback_host(std::string_view host) {
  constexpr std::string_view kName = "localhost";
  const std::string_view last = host.substr(host.size() - std::min(host.size(), kName.size()));
  if (equal_ignoring_case(last, kName))
    return host.size() == kName.size() || host[host.size() - kName.size() - 1] == '.';
  const bool bracketed = host.starts_with('[') && host.ends_with(']');
  // A name may begin like an address: 127.0.0.1.evil.example.
  boost::system::error_code error;
  const auto address =
      boost::asio::ip::make_address(std::string(bracketed ? host.substr(1, host.size() - 2) : host), error);
  return !error && address.is_v6() == bracketed && address.is_loopback();
}

}  // namespace shoal::server
