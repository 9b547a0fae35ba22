// The names that the files of a run carry; another number means that names have changed.
#pragma once

namespace shoal::runs {

inline constexpr const char* kRunSchema = "shoal-bench-run-1";
inline constexpr const char* kSummarySchema = "shoal-bench-summary-1";

}  // namespace shoal::runs
