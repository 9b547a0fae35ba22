#include "fleet/address.h"

#include <algorithm>
#include <arpa/inet.h>
#include <charconv>

namespace shoal::fleet {

std::optional<Address> parse_address(std::string_view text) {
  constexpr int kLastPort = 65535;
  const size_t colon = std::min(text.rfind(':'), text.size());
  const std::string_view number = text.substr(std::min(colon + 1, text.size()));
  Address address{.host = std::string(text.substr(0, colon))};
  in_addr parsed;
  const char* last = number.data() + number.size();
  const auto [end, error] = std::from_chars(number.data(), last, address.port);
  if (error != std::errc{} || end != last || address.port < 1 || address.port > kLastPort)
    return std::nullopt;
  if (inet_pton(AF_INET, address.host.c_str(), &parsed) != 1) return std::nullopt;
  return address;
}

}  // namespace shoal::fleet
