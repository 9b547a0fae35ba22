#include "cli/host_and_port.h"

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "cli/integer_option.h"

namespace shoal::cli {

void HostAndPort::add_to(CLI::App& command) {
  CLI::Option* const listen = command.get_option("--listen");
  const std::string heading = listen->get_group();
  const auto add = [&](const char* flag, std::string& into, const char* type, const char* help) {
    command.add_option(flag, into, help)->type_name(type)->group(heading)->excludes(listen);
  };
  add("--host", host_, "TEXT", "instead of --listen: its address; 0.0.0.0 is every interface");
  add("--port", port_, "N", "instead of --listen: its port");
}

std::string HostAndPort::listen(const std::string& otherwise) const {
  const size_t colon = otherwise.rfind(':');
  std::string host = host_.empty() ? otherwise.substr(0, colon) : host_;
  const bool is_bare_v6 = host.find(':') != std::string::npos && !host.starts_with('[');
  if (is_bare_v6) host = "[" + host + "]";
  if (!port_.empty()) parse_integer("port", port_, {0, 65535});
  const std::string port = !port_.empty()               ? port_
                           : colon == std::string::npos ? ""
                                                        : otherwise.substr(colon + 1);
  return host + ":" + port;
}

}  // namespace shoal::cli
