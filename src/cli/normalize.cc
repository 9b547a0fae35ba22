// shoal normalize: the words that are spoken for numbers, dates, money.
#include <CLI/CLI.hpp>
#include <iostream>

#include "cli/cli.h"
#include "cli/input_text.h"
#include "text/normalise.h"

namespace shoal::cli {

void add_normalize(CLI::App& app) {
  auto input = std::make_shared<InputText>();
  CLI::App& command = *app.add_subcommand(
      "normalize", "Print a text with its English numbers, dates, money as the words that are spoken");
  command.footer("Example:\n  shoal normalize \"It costs $20 at 8:30.\"");
  input->add_to(command);
  command.callback([input] { std::cout << text::normalise_english(input->read()) << std::endl; });
}

}  // namespace shoal::cli
