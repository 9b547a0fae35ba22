// Matrices of 4-bit weights on their way from stored integers to their tiles (pack.cu, int4_tile.cuh).
#include "ops/cuda/device/launch.cuh"
#include "ops/cuda/gemm/operands/int4_tile.cuh"
#include "ops/cuda/gemm/operands/pack_source.cuh"
#include "ops/cuda/rows/with_type.cuh"

namespace shoal::ops::cuda {
namespace {

constexpr int kPackThreads = 256;

// A thread per word: four for each output of each tile. The first thread of a record writes the output's
// part of its head, too.
template <typename T>
__global__ void __launch_bounds__(kPackThreads) pack_int4_kernel(const PackArguments a, TileForm form) {
  wait_for_inputs();
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kPackThreads + threadIdx.x;
  const int64_t words = a.shape.row_tiles() * 4, n = i / words, tile = i % words / 4, quarter = i % 4;
  if (n >= a.from.outputs) return;
  const int64_t output = a.first_output + n, row = output % kTileOutputs;
  const int64_t record = tile >> form.shift, tile_in_record = tile & ((1 << form.shift) - 1);
  char* const to = static_cast<char*>(a.to) + tile_row_of(a, output) * form.row_bytes(a.shape.row_tiles()) +
                   form.start_of(static_cast<int>(tile));
  const auto* const bytes = static_cast<const uint8_t*>(a.source) + a.from.start + n * a.from.n_outer_stride;
  uint32_t word = 0;
  for (int64_t j = 0; j < 8; ++j) {
    const int64_t k = tile * kTileInputs + j / 2 * 8 + quarter * 2 + j % 2;
    if (k >= a.shape.depth) continue;
    const uint32_t integer = bytes[k / 2] >> (k % 2 * 4) & 15;
    word |= integer << (j / 2 * 4 + j % 2 * 16);
  }
  reinterpret_cast<uint32_t*>(to + kInt4HeadBytes + tile_in_record * kInt4TileBytes)[row * 4 + quarter] =
      word;
  if (tile_in_record > 0 || quarter > 0) return;
  const auto value = [&](const Bf16* of) {
    return __uint_as_float(static_cast<uint32_t>(of[n * a.from.groups + record]) << 16);
  };
  reinterpret_cast<uint32_t*>(to)[row] =
      NibbleScale<T>::head(value(a.from.group_scales), value(a.from.minima));
}

}  // namespace

void pack_int4(Context& ctx, const PackArguments& arguments, const MatrixFormat& format) {
  const int64_t words = arguments.from.outputs * arguments.shape.row_tiles() * 4;
  const Grid grid{.blocks = dim3(static_cast<unsigned>(blocks_for(words, kPackThreads))),
                  .threads = dim3(kPackThreads)};
  with_operand_type(format.operand, [&](auto type) {
    launch(ctx, "pack int4", grid, pack_int4_kernel<decltype(type)>, arguments, form_of(format));
  });
}

}  // namespace shoal::ops::cuda
