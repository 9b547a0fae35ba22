// --host and --port, as other servers have them, in place of --listen HOST:PORT.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace shoal::cli {

class HostAndPort {
 public:
  HostAndPort() = default;
  HostAndPort(std::string host, std::string port) : host_(std::move(host)), port_(std::move(port)) {}

  // Once the command has --listen.
  void add_to(CLI::App& command);
  bool are_given() const { return !host_.empty() || !port_.empty(); }
  // The address that they mean; the half that is not given is that of `otherwise`. Throws
  // Error(invalid_argument).
  std::string listen(const std::string& otherwise) const;

 private:
  std::string host_, port_;
};

}  // namespace shoal::cli
