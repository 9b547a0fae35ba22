#include "cli/input_text.h"

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "shoal/model.h"

namespace shoal::cli {
namespace {

std::string read_standard_input(size_t max_bytes) {
  std::string text;
  char block[1 << 16];
  while (true) {
    const ssize_t got = read(STDIN_FILENO, block, sizeof block);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(ErrorCode::io, "standard input: cannot be read: ", std::strerror(errno));
    if (got == 0) return text;
    text.append(block, static_cast<size_t>(got));
    if (text.size() > max_bytes)
      fail(ErrorCode::too_large, "text: more than ", max_bytes, " bytes on standard input");
  }
}

}  // namespace

void InputText::add_to(CLI::App& command) {
  command.add_option("text", text, "what to say; - reads standard input");
  command.add_option("--file", file, "read the text from a file (UTF-8, at most 256 KiB)");
}

std::string InputText::read() const {
  if (!text.empty() && !file.empty())
    fail(ErrorCode::invalid_argument, "text: give it as an argument or with --file, not both");
  if (!file.empty()) return read_file(file, kMaxTextBytes);
  if (text == "-") return read_standard_input(static_cast<size_t>(kMaxTextBytes));
  return text;
}

}  // namespace shoal::cli
