// shoal completion: the script that a shell reads, made from the commands as they are.
#include "cli/completion.h"

#include <CLI/CLI.hpp>
#include <cstdio>

#include "cli/cli.h"
#include "cli/number_option.h"

namespace shoal::cli {

void add_completion(CLI::App& app) {
  auto* completion =
      app.add_subcommand("completion", "Print the script that completes commands and options in a shell");
  auto shell = std::make_shared<std::string>();
  completion->add_option("shell", *shell, "bash, zsh, fish")
      ->required()
      ->check(one_of({"bash", "zsh", "fish"}));
  completion->footer(
      "Examples:\n"
      "  source <(shoal completion bash)\n"
      "  shoal completion zsh > ~/.zfunc/_shoal       # a folder of $fpath\n"
      "  shoal completion fish > ~/.config/fish/completions/shoal.fish");
  completion->callback([&app, shell] {
    const std::vector<CommandWords> commands = command_words(app);
    const std::string script = *shell == "bash"  ? bash_completion(commands)
                               : *shell == "zsh" ? zsh_completion(commands)
                                                 : fish_completion(commands);
    std::fputs(script.c_str(), stdout);
  });
}

}  // namespace shoal::cli
