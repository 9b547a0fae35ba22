// One step of the language model over rows of many sequences, with failures kept to the rows that cause them.
#pragma once

#include <cstdint>
#include <exception>
#include <span>
#include <vector>

#include "base/function_ref.h"
#include "models/dual_ar/dual_ar.h"
#include "ops/context.h"
#include "runtime/families/language/model_calls.h"
#include "runtime/kv/kv_pages.h"

namespace shoal::runtime {

// One sequence's part in a step. The spans stay valid while the step runs.
struct SequenceRows {
  std::span<const PageId> pages;
  std::span<const int32_t> prompt, frames;  // the sequence's columns: the prompt's, then the frames
  int64_t first = 0, count = 0;             // of its columns are computed
  bool wants_frame = false;                 // they are the last: draw a frame after them
  dual_ar::FrameRequest request;            // how, if so
  std::span<int32_t> frame;                 // written, if so
  std::exception_ptr error;                 // written: why this sequence's part could not be done
};

// Engine thread only. Owns the arrays of a step, the host's and the device's.
class StepRunner {
 public:
  // For steps of at most `rows` sequences.
  StepRunner(const dual_ar::Config& config, ModelCalls& calls, dual_ar::KvCache& cache, ops::Context& ctx,
             int64_t rows);

  int64_t memory_bytes() const { return memory_.bytes(); }

  // Rows that need a frame come first. A step that throws is run again in halves, down to single sequences: a
  // result does not depend on the other rows of its batch, so the other sequences get exactly the same
  // result. `before_retry` is called once before that.
  void run(std::span<SequenceRows> rows, FunctionRef<void()> before_retry);

 private:
  void run_together(std::span<SequenceRows> rows);
  void run_in_halves(std::span<SequenceRows> rows);
  void append(const SequenceRows& rows, int64_t pages_per_sequence);

  const dual_ar::Config& config_;
  ModelCalls& calls_;
  dual_ar::KvCache& cache_;
  ops::Context& ctx_;
  dual_ar::StepMemory memory_;
  std::vector<int32_t> columns_, positions_, offsets_, pages_, frames_;
  std::vector<dual_ar::FrameRequest> requests_;
};

}  // namespace shoal::runtime
