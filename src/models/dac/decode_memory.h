// The memory through which decoding passes are given codes and give samples.
#pragma once

#include <cstdint>
#include <span>

#include "ops/context.h"
#include "ops/step_graph.h"

namespace shoal::dac {

// The size of the largest pass and the memory of its inputs and samples.
struct DecodeSizes {
  int64_t streams = 0;  // of one pass
  int64_t frames = 0;   // of one pass, of all streams
  int64_t codebooks = 0;
  int64_t samples_per_frame = 0;
  int64_t table_pages = 0;  // of the page table, for each stream
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

// Arrays of i32 one after the other in a block, each from a multiple of 16 bytes on.
class BlockArrays {
 public:
  explicit BlockArrays(const ops::StepBlock& block) : block_(block) {}

  struct Array {
    std::span<int32_t> host;
    TensorView device;
  };
  Array add(Shape shape);
  int64_t bytes() const { return bytes_; }
  // What add() takes for that many values.
  static int64_t bytes_for(int64_t count) { return (count * 4 + 15) / 16 * 16; }

 private:
  const ops::StepBlock& block_;
  int64_t bytes_ = 0;
};

}  // namespace shoal::dac
