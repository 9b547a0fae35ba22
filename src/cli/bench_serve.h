// The subcommand `shoal bench serve`.
#pragma once

namespace CLI {
class App;
}

namespace shoal::cli {

// Adds it to `shoal bench`.
void add_bench_serve(CLI::App& bench);

}  // namespace shoal::cli
