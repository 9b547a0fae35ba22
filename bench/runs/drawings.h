// What a report draws of single requests, small enough for a page: curves, boxes, a timeline.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "bench/runs/run_files.h"

namespace shoal::runs {

// "groups": for each level or configuration
//   "latency_ms", "first_audible_ms": of completed requests to readers that were not slow,
//     "box" [least, p25, p50, p75, greatest] (nearest rank), absent without values;
//     "curve" [[value, share of the requests that took no longer], ...], rising, at most 201 points.
//   For a suite the same under "texts": {"short": ...}.
// "timeline": [[group, due_s, first_audible_ms, latency_ms, outcome], ...], at most 2,500: every one of the
// requests
//   that did not complete up to 500, every n-th of the others. "requests": how many there are.
nlohmann::ordered_json drawings_of(const StoredRun& run);

}  // namespace shoal::runs
