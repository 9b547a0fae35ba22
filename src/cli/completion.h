// Completion of the command line in shells.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace shoal::cli {

// What may follow a command.
struct CommandWords {
  struct Option {
    std::vector<std::string> names;  // "--output", "-o"
    std::string description;
    bool takes_value = false;
    std::vector<std::string> choices;  // of the value; empty: any, such as a file's name
  };
  struct Subcommand {
    std::string name, description;
  };
  std::string path;  // "voices add"; empty: the program itself
  std::vector<Subcommand> subcommands;
  std::vector<Option> options;
};

// Of `app` and everything below it, the program first; hidden options and commands are left out.
std::vector<CommandWords> command_words(const CLI::App& app);

// The scripts that each shell reads, from the words of all commands.
std::string bash_completion(const std::vector<CommandWords>& commands);
std::string zsh_completion(const std::vector<CommandWords>& commands);
std::string fish_completion(const std::vector<CommandWords>& commands);

}  // namespace shoal::cli
