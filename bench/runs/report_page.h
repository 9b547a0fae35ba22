// The report of runs as one HTML file.
#pragma once

#include <span>
#include <string>

#include "bench/runs/run_files.h"

namespace shoal::runs {

// Whether this program was built with the page; without it the functions below throw Error(unsupported),
// which tells how to get one.
bool can_draw_reports();
// One file that needs no network: runs side by side, in their order. What their files say can do nothing in
// it but be read.
std::string report_page(std::span<const StoredRun> runs);
// Replaces `path` by it, whole or not at all. Throws Error(io).
void write_report(const std::string& path, std::span<const StoredRun> runs);

}  // namespace shoal::runs
