// Bidirectional LSTMs.
#pragma once

#include "ops/context.h"
#include "ops/packed_matrix.h"
#include "ops/segments.h"

namespace shoal::ops {

// One direction as PyTorch stores it, gates in the order i, f, g, o: weight_ih [4 hidden,
// inputs], weight_hh [4 hidden, hidden], bias_ih, bias_hh [4 hidden]; f32, in host memory.
struct LstmDirection {
  TensorView weight_ih, weight_hh, bias_ih, bias_hh;
};

// Made once at load, immutable afterwards.
struct PackedLstm {
  int64_t inputs = 0, hidden = 0;
  PackedMatrix input;  // [2 * 4 hidden, inputs] of both directions, with the sum of both biases
  Tensor recurrent;    // of both directions, in the backend's layout
  int64_t bytes() const { return input.bytes() + recurrent.bytes(); }
};

// dtype: of the products with the inputs (f32, bf16, or f16 on a GPU). The recurrence is in f32 on the CPU; a
// GPU may keep its weights in bf16 unless dtype is f32. Cell states are f32. Weights without memory
// (Tensor::sized) give a result without memory.
PackedLstm pack_lstm(Context& ctx, const LstmDirection& forward, const LstmDirection& backward, DType dtype);

// y[t] = [h forward | h backward] for every row of every segment; each direction begins at its end of the
// segment with zero states. The same for a segment in every batch, bit for bit. x: f32 [total_rows, inputs]
// (rows may be strided), y: f32 [total_rows, 2 * hidden] (rows may be strided); its gaps become zeros. Uses 8
// * hidden floats of the workspace per row.
void bidirectional_lstm(Context& ctx, TensorView x, const Segments& segments, const PackedLstm& lstm,
                        TensorView y);

}  // namespace shoal::ops
