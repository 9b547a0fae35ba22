// Matrices of 8-bit weights on their way from a checkpoint to their tiles (pack.cu, matrix_layout.cuh).
#include "ops/cuda/device/launch.cuh"
#include "ops/cuda/gemm/operands/pack_source.cuh"
#include "ops/cuda/rows/narrowed.cuh"
#include "ops/cuda/rows/with_type.cuh"

namespace shoal::ops::cuda {
namespace {

constexpr int kPackWarps = 8;

// A warp an output. Integers and scale are those of ops/cpu/gemm/integers.h, or stored ones; the scale is
// then rounded to what is multiplied.
template <typename T>
__global__ void __launch_bounds__(32 * kPackWarps) pack_int8_kernel(const PackArguments a, float* scales) {
  wait_for_inputs();
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int64_t n = static_cast<int64_t>(blockIdx.x) * kPackWarps + threadIdx.x / 32;
  if (n >= a.from.outputs) return;
  const bool is_stored = a.from.scales != nullptr;
  float largest = 0;
  for (int64_t i = lane; !is_stored && i < a.shape.taps * a.shape.depth; i += 32)
    largest = fmaxf(largest, fabsf(source_value(a, n, i / a.shape.depth, i % a.shape.depth)));
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2)
    largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, distance));
  const float exact_scale = is_stored ? a.from.scales[n % a.from.scale_count] : __fdiv_rn(largest, 127.0f);
  const float factor = is_stored ? 1.0f : largest > 0 ? __fdiv_rn(127.0f, largest) : 0.0f;
  const float scale = widened(narrowed_value<T>(exact_scale));
  const int64_t output = a.first_output + n, tile_row = tile_row_of(a, output), row = output % kTileOutputs;
  if (lane == 0) scales[tile_row * kTileOutputs + row] = scale;
  const auto integer = [&](int64_t tap, int64_t k) {
    if (k >= a.shape.depth) return int8_t{0};
    const float steps = __fmul_rn(source_value(a, n, tap, k), factor);
    return static_cast<int8_t>(__float2int_rn(fminf(fmaxf(steps, -127.0f), 127.0f)));
  };
  for (int64_t i = lane; i < a.shape.row_tiles() * 4; i += 32) {
    const int64_t tile = i / 4, quarter = i % 4, tap = tile / a.shape.tap_tiles(),
                  first = tile % a.shape.tap_tiles() * kTileInputs + quarter * 2;
    __align__(8) uint8_t eight[8];
    for (int j = 0; j < 8; ++j)
      eight[j] = static_cast<uint8_t>(integer(tap, first + j / 2 * 8 + j % 2) + 128);
    *reinterpret_cast<uint2*>(static_cast<char*>(a.to) + int8_index(a.shape, tile_row, row, tile, quarter)) =
        *reinterpret_cast<const uint2*>(eight);
  }
}

}  // namespace

void pack_int8(Context& ctx, const PackArguments& arguments, DType operand, float* scales) {
  const Grid grid{dim3(static_cast<unsigned>(blocks_for(arguments.from.outputs, kPackWarps))),
                  dim3(32 * kPackWarps)};
  with_operand_type(operand, [&](auto type) {
    launch(ctx, "pack int8", grid, pack_int8_kernel<decltype(type)>, arguments, scales);
  });
}

}  // namespace shoal::ops::cuda
