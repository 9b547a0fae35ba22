// A text from the command line, a file or standard input.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace shoal::cli {

// Lives as long as the command and never moves.
class InputText {
 public:
  // The argument `text` and --file.
  void add_to(CLI::App& command);
  // Words that stand together without quotes are one text. Without any, what is sent into standard input. At
  // most 256 KiB. Throws Error: invalid_argument (several sources, none, words in several places, the name of
  // a file), not_found, io, too_large (says how a long text is spoken).
  std::string read() const;

 private:
  std::string joined_words() const;

  std::vector<std::string> words_;
  std::string file_;
  const CLI::App* command_ = nullptr;
  const CLI::Option* argument_ = nullptr;
};

}  // namespace shoal::cli
