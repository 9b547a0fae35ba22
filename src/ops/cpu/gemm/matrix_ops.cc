#include <algorithm>

#include "ops/cpu/gemm/matrix_input.h"
#include "ops/cpu/gemm/matrix_product.h"
#include "ops/cpu_backend.h"

namespace shoal::ops::cpu {

void linear(Context& ctx, TensorView x, const PackedMatrix& weight, TensorView y, const Epilogue& epilogue) {
  const Workspace::Scope scope(*ctx.workspace);
  multiply(ctx, {.input = stage_rows(ctx, x, weight), .weight = weight, .y = y, .epilogue = epilogue});
}

void linear_swiglu(Context& ctx, TensorView x, const PackedMatrix& gate_up, TensorView y) {
  const Workspace::Scope scope(*ctx.workspace);
  multiply(ctx,
           {.input = stage_rows(ctx, x, gate_up), .weight = gate_up, .y = y, .epilogue = {}, .swiglu = true});
}

void causal_conv1d(Context& ctx, const ConvInput& input, const PackedMatrix& weight, int64_t dilation,
                   TensorView y, const Epilogue& epilogue) {
  const Workspace::Scope scope(*ctx.workspace);
  multiply(ctx, {.input = stage_convolution(ctx, input, weight, dilation),
                 .weight = weight,
                 .y = y,
                 .epilogue = epilogue});
}

void valid_conv1d(Context& ctx, TensorView x, const PackedMatrix& weight, int64_t dilation, TensorView y,
                  const Epilogue& epilogue) {
  const Workspace::Scope scope(*ctx.workspace);
  multiply(ctx,
           {.input = stage_signal(ctx, x, weight, dilation), .weight = weight, .y = y, .epilogue = epilogue});
}

void depthwise_conv1d(Context& ctx, const ConvInput& input, TensorView weight, TensorView bias,
                      TensorView y) {
  const Workspace::Scope scope(*ctx.workspace);
  const int64_t taps = weight.dim(0), channels = weight.dim(1);
  const StagedSequences staged = stage_sequences(ctx, input, taps - 1, RowFormat::f32, channels);
  const int64_t grain = std::max<int64_t>(1, 4096 / channels);
  for (const Segment& segment : staged.segments) {
    ctx.team->parallel_for(segment.rows, grain, [&](int64_t begin, int64_t end, int) {
      for (int64_t t = begin; t < end; ++t) {
        float* out = y.row<float>(segment.output_row + t);
        std::fill(out, out + channels, 0.0f);
        for (int64_t tap = 0; tap < taps;
             ++tap) {  // products rounded, oldest tap first: the same on every CPU
          const float* x = staged.rows.row<float>(segment.input_row + t + tap);
          const float* w = weight.row<float>(tap);
          for (int64_t c = 0; c < channels; ++c) out[c] += w[c] * x[c];
        }
        if (bias.empty()) continue;
        for (int64_t c = 0; c < channels; ++c) out[c] += bias.as<float>()[c];
      }
    });
  }
}

}  // namespace shoal::ops::cpu
