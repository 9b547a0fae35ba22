// How long work takes.
#pragma once

#include <vector>

#include "base/function_ref.h"
#include "ops/context.h"

namespace shoal::bench {

// Seconds since an arbitrary start, from a steady clock.
double now_s();
// By that clock. What work gives to a device, it must wait for.
double seconds_of(FunctionRef<void()> work);
// Of `times` runs, after `warm_up` that do not count. times >= 1.
double median_seconds(int warm_up, int times, FunctionRef<void()> work);
double best_seconds(int times, FunctionRef<void()> work);

// Drops a context's CUDA graphs when a part of a benchmark ends. Graphs are identified by the addresses of
// their data (ops/step_graph.h), which the next part may reuse for something else.
class RecordingsOfPart {
 public:
  explicit RecordingsOfPart(ops::Context& ctx) : ctx_(ctx) {}
  ~RecordingsOfPart();
  RecordingsOfPart(const RecordingsOfPart&) = delete;
  RecordingsOfPart& operator=(const RecordingsOfPart&) = delete;

 private:
  ops::Context& ctx_;
};

}  // namespace shoal::bench
