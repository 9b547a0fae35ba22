// IPv4 addresses with a port.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace shoal::fleet {

struct Address {
  std::string host;
  int port = 0;

  bool operator==(const Address&) const = default;
};

// "127.0.0.1:8000"; nothing if it is none.
std::optional<Address> parse_address(std::string_view text);

}  // namespace shoal::fleet
