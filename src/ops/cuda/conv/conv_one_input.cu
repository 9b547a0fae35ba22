// A codec's first convolution: f32 samples to rows of outputs. A thread makes four outputs of four rows, so
// that a weight is loaded once for four rows and a sample once for four outputs.
#include "ops/cuda/conv/conv_kernels.cuh"
#include "ops/cuda/device/alignment.h"
#include "ops/cuda/device/launch.cuh"
#include "ops/cuda/gemm/operands/product_epilogue.cuh"

namespace shoal::ops::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kRowsOfThread = 4;

__global__ void __launch_bounds__(kThreads) one_input_kernel(const __grid_constant__ Product product) {
  wait_for_inputs();
  const auto fours = static_cast<unsigned>(product.shape.outputs / 4);
  const unsigned item = blockIdx.x * kThreads + threadIdx.x;
  const int64_t row = static_cast<int64_t>(item / fours) * kRowsOfThread;
  const int n = static_cast<int>(item % fours) * 4;
  if (row >= product.rows) return;
  const auto* const weight = static_cast<const float*>(product.weight) + n;
  const int64_t columns = f32_columns(product.shape);
  const float* from[kRowsOfThread];
#pragma unroll
  for (int i = 0; i < kRowsOfThread; ++i)
    from[i] = static_cast<const float*>(product.x) + product.taps.first_rows[min(row + i, product.rows - 1)];
  float totals[kRowsOfThread][4] = {};
  for (int tap = 0; tap < static_cast<int>(product.shape.taps); ++tap) {
    const float4 w = __ldg(reinterpret_cast<const float4*>(weight + tap * columns));
#pragma unroll
    for (int i = 0; i < kRowsOfThread; ++i) {
      const float x = from[i][tap * product.taps.dilation];
      totals[i][0] = __fadd_rn(totals[i][0], __fmaf_rn(x, w.x, 0.0f));
      totals[i][1] = __fadd_rn(totals[i][1], __fmaf_rn(x, w.y, 0.0f));
      totals[i][2] = __fadd_rn(totals[i][2], __fmaf_rn(x, w.z, 0.0f));
      totals[i][3] = __fadd_rn(totals[i][3], __fmaf_rn(x, w.w, 0.0f));
    }
  }
  const float4 zeros = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  const float4 bias =
      product.epilogue.bias ? __ldg(reinterpret_cast<const float4*>(product.epilogue.bias + n)) : zeros;
#pragma unroll
  for (int i = 0; i < kRowsOfThread; ++i) {
    if (row + i >= product.rows) break;
    float* const y = static_cast<float*>(product.epilogue.y) + (row + i) * product.epilogue.y_stride + n;
    const float* const t = totals[i];
    *reinterpret_cast<float4*>(y) = make_float4(epilogue_value(t[0], bias.x, 1.0f, 0.0f, Activation::none),
                                                epilogue_value(t[1], bias.y, 1.0f, 0.0f, Activation::none),
                                                epilogue_value(t[2], bias.z, 1.0f, 0.0f, Activation::none),
                                                epilogue_value(t[3], bias.w, 1.0f, 0.0f, Activation::none));
  }
}

}  // namespace

bool has_one_input(const Product& product) {
  const ProductEpilogue& epilogue = product.epilogue;
  return product.format == DType::f32 && product.shape.depth == 1 && product.shape.outputs % 4 == 0 &&
         product.taps.first_rows && product.x_stride == 1 && epilogue.activation == Activation::none &&
         !epilogue.accumulate && !epilogue.scale && is_aligned(epilogue.bias) && is_aligned(epilogue.y) &&
         epilogue.y_stride % 4 == 0 && epilogue.y_dtype == DType::f32;
}

void convolve_one_input(Context& ctx, const Product& product) {
  const int64_t items = blocks_for(product.rows, kRowsOfThread) * (product.shape.outputs / 4);
  CHECK(items < int64_t{1} << 32, "a convolution of ", product.rows, " rows");
  launch(ctx, "convolution of one input",
         {.blocks = dim3(static_cast<unsigned>(blocks_for(items, kThreads))), .threads = dim3(kThreads)},
         one_input_kernel, product);
}

}  // namespace shoal::ops::cuda
