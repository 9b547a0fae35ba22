// Which host names mean this machine on every machine.
#pragma once

#include <string_view>

namespace shoal::server {

// "speech.example" of "speech.example:8080", "[::1]" of "[::1]:8080"; the port may be missing.
std::string_view host_of(std::string_view authority);
// localhost, names below it, 127.0.0.0/8 and [::1]: no name server can point them elsewhere.
bool is_loopback_host(std::string_view host);

}  // namespace shoal::server
