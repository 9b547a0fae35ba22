// The address of a server under load.
#pragma once

#include <string>
#include <string_view>

namespace shoal::load {

struct Url {
  bool tls = false;
  std::string host;  // a name, or an IP address without brackets
  std::string port;
  std::string path;  // with its query; empty: none was given

  std::string authority() const;  // as in a Host field; the port is left out if it is the scheme's
  std::string text() const;
};

// http://HOST[:PORT][/PATH] or https://... Throws Error(invalid_argument) that says which part is wrong.
Url parse_url(std::string_view text);

}  // namespace shoal::load
