// The subcommand `shoal bench report`.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace shoal::cli {

// Adds it to `shoal bench`.
void add_bench_report(CLI::App& bench);

// Writes report.html into the folder of a run. A program without the page, a disk that is full: the run
// stands all the same, and a line on standard error says what is missing.
void draw_report(const std::string& folder);

}  // namespace shoal::cli
