// The memory through which decoding passes are given codes and give samples.
#pragma once

#include <cstdint>
#include <span>

#include "ops/context.h"
#include "ops/step_graph.h"

namespace shoal::dac {

// The size of a pass, as of the largest one, and of its inputs and samples.
struct DecodeSizes {
  int64_t streams = 0;  // of one pass
  int64_t frames = 0;   // of one pass, of all streams
  int64_t codebooks = 0;
  int64_t samples_per_frame = 0;
  int64_t plans = 1;           // of attention (WindowTransformer::forward)
  int64_t plan_sequences = 0;  // of all of them
  int64_t table_pages = 0;     // of the page table, for each of these
};

// The inputs of a pass, i32, in the host's memory and in the device's.
struct PassInputs {
  struct Array {
    std::span<int32_t> host;
    TensorView device;
    // Rows [begin, end) of the first dimension.
    Array part(int64_t begin, int64_t end) const;
  };
  Array offsets, slots;     // [sequences + 1], [sequences]
  Array positions, owners;  // [frames]; owners: the sequence of each frame, of those of its plan
  Array table_rows;         // [frames, num_codebooks]
  Array plan_offsets;       // [plan_sequences + plans], one plan's after the other
  Array page_table;         // [plan_sequences, table_pages]
  int64_t bytes = 0;        // of all
  // Of a pass of so many streams and frames, at the block's start. Without a block only their bytes.
  PassInputs(const ops::StepBlock* block, const DecodeSizes& sizes);
};

// Its address never changes, so that a pass can be captured in a CUDA graph and replayed; all inputs that
// vary are stored in it. For one pass at a time.
class DecodeMemory {
 public:
  // Throws Error(resource_exhausted).
  DecodeMemory(ops::Context& ctx, const DecodeSizes& sizes);

  const ops::StepBlock& inputs() const { return inputs_; }
  const ops::StepBlock& samples() const { return samples_; }
  int64_t bytes() const { return inputs_.bytes() + samples_.bytes(); }
  // The same before there is one.
  static int64_t bytes_of(const DecodeSizes& sizes);
  // No other memory of this process has it, not even one at the same place in another's time.
  int64_t serial() const { return serial_; }

 private:
  ops::StepBlock inputs_, samples_;
  int64_t serial_;
};

}  // namespace shoal::dac
