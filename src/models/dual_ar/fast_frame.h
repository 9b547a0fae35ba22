// The fast transformer over the positions of one frame, for a batch of rows (MODEL.md 4).
#pragma once

#include <cstdint>

#include "models/dual_ar/bind.h"
#include "models/dual_ar/config.h"
#include "models/dual_ar/step_memory.h"
#include "ops/context.h"
#include "ops/residual.h"
#include "tensor/tensor.h"

namespace shoal::dual_ar {

class Taps;

// Its workspace.
struct FastBuffers {
  FastBuffers(Workspace& workspace, const Config& config, int64_t rows);

  TensorView keys, values;  // [layers, rows * kv_heads * num_codebooks * head_dim, padded]
  TensorView x;             // [2 * rows, dim]: both positions of the first pass
  TensorView logits;        // [rows, residual_codes]
};

// Its keys and values live in the workspace: make it inside a Workspace::Scope, drop it before the scope
// ends.
class FastFrame {
 public:
  FastFrame(ops::Context& ctx, const Config& config, const Weights& weights, const StepMemory& memory,
            int64_t rows, Taps* taps);

  // Position 0 reads the slow transformer's hidden state, position p > 0 the code of codebook p - 1. Position
  // p predicts codebook p; the prediction of position 0 is not used, so 0 and 1 are one pass. slow: f32
  // [rows, slow.dim]; codes: i32 [rows, ...], the first column, of codebook 0. Returns the logits of codebook
  // 1, f32 [rows, residual_codes], valid until the next call.
  TensorView first_pass(TensorView slow, TensorView codes);
  // codes: of codebook k - 1 -> logits of codebook k; k = 2, 3, ...
  TensorView next_pass(TensorView codes);

 private:
  ops::BatchPlan first_plan() const;
  ops::BatchPlan next_plan() const;
  void project(TensorView slow, TensorView out);
  void run_layers(const ops::BatchPlan& plan, ops::Residual& x);
  ops::RmsNorm head_norm() const;

  ops::Context& ctx_;
  const Config& config_;
  const Weights& weights_;
  const StepMemory& memory_;
  int64_t rows_;
  Taps* taps_;
  int64_t position_ = 0;  // first one of the next pass
  FastBuffers buffers_;
};

}  // namespace shoal::dual_ar
