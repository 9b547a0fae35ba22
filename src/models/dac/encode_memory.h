// The memory that encoding keeps from pass to pass.
#pragma once

#include <algorithm>

#include "models/dac/config.h"
#include "models/dac/state.h"
#include "ops/transfer.h"

namespace shoal::dac {

// Of at most `clips` clips at a time, for one batch after the other.
class EncodeMemory {
 public:
  // Throws Error(resource_exhausted), as codes() does.
  EncodeMemory(const StateLayout& layout, int clips, DType kv_dtype, const ops::Context& ctx)
      : states_(layout, clips, kv_dtype, ctx) {}

  StateSlots& states() { return states_; }
  // i32 [frames, codebooks], not initialised: the codes that a batch finds. Valid until the next call.
  TensorView codes(const ops::Context& ctx, int64_t frames, int64_t codebooks) {
    if (codes_.empty() || codes_.dim(0) < frames)
      codes_ = ops::new_tensor(ctx, DType::i32, {frames, codebooks});
    return codes_.view().slice(0, frames);
  }

 private:
  StateSlots states_;
  Tensor codes_;
};

}  // namespace shoal::dac
