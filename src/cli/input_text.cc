#include "cli/input_text.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/printable.h"
#include "cli/mistakes.h"
#include "shoal/model.h"

namespace shoal::cli {
namespace {

constexpr const char* kStandardInput = "-";

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
      fail(ErrorCode::too_large, "text: more than ", max_bytes,
           " bytes on standard input; speak it in pieces: split -C 200k cuts at the ends of lines");
  }
}

// Whether somebody sends something: a pipe, a file, a socket; not a terminal or /dev/null.
bool is_sent_into_standard_input() {
  struct stat what{};
  if (fstat(STDIN_FILENO, &what) != 0) return false;
  return S_ISFIFO(what.st_mode) || S_ISREG(what.st_mode) || S_ISSOCK(what.st_mode);
}

std::string read_text_file(const std::string& path, const std::string& command) {
  try {
    return read_file(path, kMaxTextBytes);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::too_large) throw;
    const std::string file = quoted_for_shell(path);
    fail(ErrorCode::too_large, error.message(), "; in pieces: split -C 200k ", file,
         " part. && for part in part.*; do ", command, " --file $part",
         command.ends_with(" say") ? " -o $part.mp3" : "", "; done");
  }
}

// "shoal say": of a command right below the program.
std::string name_of(const CLI::App& command) {
  return command.get_parent() ? command.get_parent()->get_name() + " " + command.get_name()
                              : command.get_name();
}

// A name with an ending that is there: its content is meant, hardly the name.
bool is_name_of_file(const std::string& text) {
  return text.find('.') != std::string::npos && text.find(' ') == std::string::npos && is_regular_file(text);
}

}  // namespace

void InputText::add_to(CLI::App& command) {
  command_ = &command;
  // Any number of words. Not as "extra" ones, of which CLI11 would take "[softly, please]" for a list.
  constexpr int kManyWords = 1 << 20, kNoLimit = -1;
  argument_ = command.add_option("text", words_, "what to say; - reads standard input")
                  ->type_name("TEXT")
                  ->expected(kManyWords, kNoLimit)
                  ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
                  ->allow_extra_args(false);
  command.add_option("--file", file_, "read the text from a file (UTF-8, at most 256 KiB)");
}

std::string InputText::joined_words() const {
  std::string text = words_.front();
  for (size_t i = 1; i < words_.size(); ++i) text += " " + words_[i];
  const std::vector<CLI::Option*>& order = command_->parse_order();
  const auto is_word = [this](const CLI::Option* option) { return option == argument_; };
  const auto first = std::ranges::find_if(order, is_word);
  const auto stray = std::find_if(std::find_if_not(first, order.end(), is_word), order.end(), is_word);
  const bool has_dash = words_.size() > 1 && std::ranges::count(words_, kStandardInput) > 0;
  if (stray != order.end() || has_dash)
    fail(ErrorCode::invalid_argument,
         "text: its words stand in several places; put it in quotes, as in: ", name_of(*command_), " ",
         quoted_for_shell(text));
  if (words_.size() == 1 && is_name_of_file(text))
    fail(ErrorCode::invalid_argument, "text: ", quoted_for_shell(text),
         " is a file; for what is in it: ", name_of(*command_), " --file ", quoted_for_shell(text));
  return text;
}

std::string InputText::read() const {
  if (!words_.empty() && !file_.empty())
    fail(ErrorCode::invalid_argument, "text: give it as an argument or with --file, not both");
  if (!file_.empty()) return read_text_file(file_, name_of(*command_));
  const std::string text = words_.empty() ? "" : joined_words();
  if (text == kStandardInput || (words_.empty() && is_sent_into_standard_input()))
    return read_standard_input(static_cast<size_t>(kMaxTextBytes));
  if (words_.empty())
    fail(ErrorCode::invalid_argument, "text: expected something to say, as in: ", name_of(*command_),
         " \"Hello there.\"");
  return text;
}

}  // namespace shoal::cli
