// What the command line answers when it does not understand its arguments.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace shoal::cli {

// The arguments as CLI11 takes them: `help` and `version`, which people type as commands, become the options.
// Without the program's name.
std::vector<std::string> understood_arguments(int argc, const char* const* argv);

// One sentence for an error that parsing threw: the first argument that was not understood, what may have
// been meant, and whose --help explains. `app` is the one that parsed; its name begins the commands that are
// named.
std::string answer_to(const CLI::ParseError& error, const CLI::App& app);

// `word` as a shell takes it for one argument, for examples in messages; shortened when it is long.
std::string quoted_for_shell(const std::string& word);

}  // namespace shoal::cli
