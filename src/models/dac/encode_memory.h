// The memory that encoding keeps from batch to batch.
#pragma once

#include "models/dac/state.h"
#include "ops/transfer.h"

namespace shoal::dac {

// For batches of at most `clips` clips of at most so many frames each, one batch after the other.
class EncodeMemory {
 public:
  // Throws Error(resource_exhausted).
  EncodeMemory(const StateLayout& layout, int clips, int64_t most_frames, int64_t codebooks, DType kv_dtype,
               const ops::Context& ctx)
      : states_(layout, clips, kv_dtype, ctx),
        codes_(ops::new_tensor(ctx, DType::i32, {clips * most_frames, codebooks})) {}

  StateSlots& states() { return states_; }
  // i32 [frames, codebooks]: where a batch's codes are found.
  TensorView codes(int64_t frames) { return codes_.view().slice(0, frames); }

  // Of each clip.
  static int64_t bytes_per_clip(const StateLayout& layout, int64_t most_frames, int64_t codebooks,
                                DType kv_dtype) {
    return layout.bytes_per_slot(kv_dtype) + most_frames * codebooks * size_of(DType::i32);
  }

 private:
  StateSlots states_;
  Tensor codes_;
};

}  // namespace shoal::dac
