// The command line: one function per subcommand, and the one place where errors become exit codes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace shoal::cli {

// Parses the arguments, runs the subcommand, prints errors to standard error.
// 0: done; 1: our fault (or the machine's); 2: the user's fault; 130: interrupted.
int run(int argc, char** argv);

// Each adds its subcommand and its options to `app`; the action runs when the subcommand was chosen.
void add_say(CLI::App& app);
void add_serve(CLI::App& app);
void add_fleet(CLI::App& app);
void add_doctor(CLI::App& app);
void add_ready(CLI::App& app);
void add_voices(CLI::App& app);
void add_cache(CLI::App& app);
void add_inspect(CLI::App& app);
void add_quantize(CLI::App& app);
void add_evaluate(CLI::App& app);
void add_package(CLI::App& app);
void add_normalize(CLI::App& app);
void add_phonemize(CLI::App& app);
void add_bench(CLI::App& app);
void add_completion(CLI::App& app);

}  // namespace shoal::cli
