#include "fleet/balancer.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <unistd.h>

#include "base/error.h"
#include "base/printable.h"
#include "fleet/log_lines.h"

namespace shoal::fleet {
namespace {

bool can_execute(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored) && access(path.c_str(), X_OK) == 0;
}

}  // namespace

std::string find_haproxy(const std::string& name) {
  const bool is_path = name.find('/') != std::string::npos;
  if (is_path && can_execute(name)) return name;
  const char* listed = std::getenv("PATH");
  // Debian installs it where a user's path does not lead.
  std::string folders = concat(listed == nullptr ? "" : listed, ":/usr/local/sbin:/usr/sbin:");
  for (size_t end = folders.find(':'); !is_path && end != std::string::npos; end = folders.find(':')) {
    const std::string folder = folders.substr(0, end);
    folders.erase(0, end + 1);
    if (!folder.empty() && can_execute(concat(folder, "/", name))) return concat(folder, "/", name);
  }
  fail(ErrorCode::invalid_argument, "haproxy: \"", printable(name),
       "\" is not there or cannot be executed; install it (Debian: apt-get install haproxy), or leave "
       "balancing to "
       "others with --balancer none");
}

Balancer::Balancer(std::string program, const std::string& config)
    : program_(std::move(program)), file_("haproxy.cfg", config) {
  check();
}

Command Balancer::command() const { return {.program = program_, .arguments = {"-db", "-f", file_.path()}}; }

void Balancer::check() const {
  constexpr int kPatience_ms = 10'000, kLook_ms = 10;
  Command command = this->command();
  command.arguments.push_back("-c");
  Child child(command);
  for (int waited_ms = 0; !child.poll() && waited_ms < kPatience_ms; waited_ms += kLook_ms)
    std::this_thread::sleep_for(std::chrono::milliseconds(kLook_ms));
  if (child.poll() && child.poll()->exit_code == 0) return;
  char bytes[4096];
  const ssize_t count = read(child.output(), bytes, sizeof bytes);
  LogLines lines;
  std::vector<std::string> words = lines.add({bytes, static_cast<size_t>(std::max<ssize_t>(count, 0))});
  // Notices of its version come first.
  std::erase_if(words, [](const std::string& line) { return line.find("[ALERT]") == std::string::npos; });
  fail(ErrorCode::invalid_argument, "haproxy: ", program_, " does not accept the configuration: ",
       !words.empty() ? printable(words.front())
       : child.poll() ? to_words(*child.poll())
                      : std::string("no answer"));
}

}  // namespace shoal::fleet
