// What convolutions read, on the device.
#pragma once

#include "ops/conv1d.h"
#include "ops/cuda/gemm/operands/products.h"
#include "ops/cuda/rows/snake.cuh"

namespace shoal::ops::cuda {

// The rows of a batch of sequences, what they look back at, and the snake they pass through first.
struct ConvSource {
  const float* x = nullptr;      // [rows, channels]; null: ready rows are elsewhere
  const float* alpha = nullptr;  // [channels]; null: no snake
  float* history =
      nullptr;  // of slot 0: [look_back, channels], after the snake; null: nothing is looked back at
  int64_t slot_stride = 0;           // floats
  const int32_t* offsets = nullptr;  // [sequences + 1], times rate
  const int32_t* slots = nullptr;    // [sequences]
  int sequences = 0;
  int64_t rate = 1, rows = 0;
  int channels = 0, look_back = 0;

  __device__ int64_t begin_of(int sequence) const { return offsets[sequence] * rate; }
  // Null where nothing is looked back at.
  __device__ float* history_of(int sequence) const {
    return history ? history + slots[sequence] * slot_stride : nullptr;
  }
};

ConvSource source_of(const ConvInput& input, int64_t look_back);

// Whether rows of x and of the histories, and alpha, are 16-byte aligned.
bool has_vector_rows(const ConvSource& source);

// The sequence that owns `row`, the same for all lanes of a warp, which ask together. A row behind the last
// sequence counts as its own.
__device__ inline int sequence_of(const ConvSource& source, int64_t row) {
  unsigned before = 0;  // sequences that end at or before the row
  for (int s = 1 + static_cast<int>(threadIdx.x % 32); s < source.sequences; s += 32)
    before += source.begin_of(s) <= row;
  return static_cast<int>(__reduce_add_sync(~0u, before));
}

// The same for a row not far behind one of `sequence`.
__device__ inline int next_sequence_of(const ConvSource& source, int sequence, int64_t row) {
  while (sequence + 1 < source.sequences && source.begin_of(sequence + 1) <= row) ++sequence;
  return sequence;
}

// In ctx.workspace: for each sequence its history, then its new rows after the snake, rounded to `dtype`,
// each row padded with zeros to a multiple of 8 inputs (16-bit).
struct PreparedRows {
  TensorView x;
  TapRows taps;
};

// Prepares the rows of a convolution and replaces the history by the newest inputs.
PreparedRows prepare_rows(Context& ctx, const ConvSource& source, int64_t dilation, DType dtype);

// Of rows that a residual unit made ready (residual_unit_for): puts the histories before them.
PreparedRows adopt_rows(Context& ctx, const ConvSource& source, int64_t dilation, TensorView ready);

// Only replaces the history, of a convolution that rounds its rows to `dtype`.
void update_history(Context& ctx, const ConvSource& source, DType dtype);

}  // namespace shoal::ops::cuda
