// Matrices of e4m3 weights on their way from stored bytes to their tiles (pack.cu, matrix_layout.cuh).
#include "ops/cuda/device/launch.cuh"
#include "ops/cuda/gemm/operands/pack_source.cuh"
#include "ops/cuda/rows/narrowed.cuh"
#include "ops/cuda/rows/with_type.cuh"

namespace shoal::ops::cuda {
namespace {

constexpr int kPackThreads = 256;

// A thread per eight bytes: four for each output of each tile. The first thread of an output rounds its
// scale, too, to what is multiplied.
template <typename T>
__global__ void __launch_bounds__(kPackThreads) pack_fp8_kernel(const PackArguments a, float* scales) {
  wait_for_inputs();
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kPackThreads + threadIdx.x;
  const int64_t eights = a.shape.row_tiles() * 4, n = i / eights, tile = i % eights / 4, quarter = i % 4;
  if (n >= a.from.outputs) return;
  const int64_t output = a.first_output + n, tile_row = tile_row_of(a, output), row = output % kTileOutputs;
  if (i % eights == 0) scales[tile_row * kTileOutputs + row] = widened(narrowed_value<T>(a.from.scales[n]));
  __align__(8) uint8_t eight[8];
  for (int j = 0; j < 8; ++j) {
    const int64_t k = tile * kTileInputs + j / 2 * 8 + quarter * 2 + j % 2;
    eight[j] = k < a.shape.depth ? static_cast<const uint8_t*>(a.source)[source_index(a, n, 0, k)] : 0;
  }
  *reinterpret_cast<uint2*>(static_cast<char*>(a.to) + int8_index(a.shape, tile_row, row, tile, quarter)) =
      *reinterpret_cast<const uint2*>(eight);
}

}  // namespace

void pack_fp8(Context& ctx, const PackArguments& arguments, DType operand, float* scales) {
  const int64_t eights = arguments.from.outputs * arguments.shape.row_tiles() * 4;
  const Grid grid{.blocks = dim3(static_cast<unsigned>(blocks_for(eights, kPackThreads))),
                  .threads = dim3(kPackThreads)};
  with_operand_type(operand, [&](auto type) {
    launch(ctx, "pack fp8", grid, pack_fp8_kernel<decltype(type)>, arguments, scales);
  });
}

}  // namespace shoal::ops::cuda
