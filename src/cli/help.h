// How --help looks.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace shoal::cli {

// For the program and all commands that are added afterwards.
void set_help_style(CLI::App& app);

// --help of the command lists only these options, in this order; --help-all lists all.
void show_first(CLI::App& command, std::vector<std::string> flags);

}  // namespace shoal::cli
