// The subcommand `shoal bench engine`.
#pragma once

namespace CLI {
class App;
}

namespace shoal::cli {

// Adds it to `shoal bench`.
void add_bench_engine(CLI::App& bench);

}  // namespace shoal::cli
