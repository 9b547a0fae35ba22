// A text from the command line, a file or standard input.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace shoal::cli {

struct InputText {
  std::string text, file;

  // The argument `text` and --file.
  void add_to(CLI::App& command);
  // At most 256 KiB. Throws Error: invalid_argument (both given), not_found, io, too_large.
  std::string read() const;
};

}  // namespace shoal::cli
