// How many prompt columns a step computes beside the speaking sequences.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/schedule/schedule.h"
#include "shoal/engine_config.h"
#include "tensor/tensor.h"

namespace shoal::runtime {

// What one step computes at most: columns of prompts; rows, with one for each sequence that speaks.
struct StepSize {
  int64_t columns, rows;
};

// prefill_columns beside the sequences that speak, or the device's default.
StepSize size_of_a_step(const EngineConfig& config, Device device);

class PrefillBudget {
 public:
  PrefillBudget(StepSize most, int64_t frame_us) : most_(most), frame_us_(frame_us) {}

  // A step computed this many columns beyond one per sequence. Steps with few prompt columns are ignored.
  void measure(int64_t columns, int64_t took_us);

  // What those who speak leave of the step's rows. And a step must not take so long that a listener with lead
  // runs dry meanwhile. A listener that has already
  // run dry, or has only begun, would not gain if others waited longer for their first sound (docs/PERF.md).
  int64_t columns(std::span<const ActiveJob> active) const;

 private:
  StepSize most_;
  int64_t frame_us_;
  double column_cost_us_ = 0;  // lately; 0: not known yet
};

}  // namespace shoal::runtime
