#include "bench/timing.h"

#include <algorithm>
#include <chrono>

#include "ops/step_graph.h"

namespace shoal::bench {

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double seconds_of(FunctionRef<void()> work) {
  const double start = now_s();
  work();
  return now_s() - start;
}

double median_seconds(int warm_up, int times, FunctionRef<void()> work) {
  for (int i = 0; i < warm_up; ++i) work();
  std::vector<double> seconds;
  for (int i = 0; i < times; ++i) seconds.push_back(seconds_of(work));
  const auto middle = seconds.begin() + times / 2;
  std::nth_element(seconds.begin(), middle, seconds.end());
  return *middle;
}

double best_seconds(int times, FunctionRef<void()> work) {
  double best = seconds_of(work);
  for (int i = 1; i < times; ++i) best = std::min(best, seconds_of(work));
  return best;
}

RecordingsOfPart::~RecordingsOfPart() {
  if (ctx_.graphs) ctx_.graphs->clear();
}

}  // namespace shoal::bench
