// 8- and 4-bit matrices in 16 bits, for the kernels that multiply those.
#include "ops/cuda/device/launch.cuh"
#include "ops/cuda/gemm/operands/fp8_tile.cuh"
#include "ops/cuda/gemm/operands/int4_tile.cuh"
#include "ops/cuda/gemm/operands/int8_tile.cuh"
#include "ops/cuda/gemm/operands/products.h"
#include "ops/cuda/rows/with_type.cuh"

namespace shoal::ops::cuda {
namespace {

constexpr int kWidenThreads = 256;

// What lane `lane` of a warp has of a tile, to its place there.
__device__ void store_operand(char* tile, int lane, const uint4& operand) {
  const int row = lane / 4, quarter = lane % 4;
  const uint32_t chunks[] = {operand.x, operand.y, operand.z, operand.w};
#pragma unroll
  for (int chunk = 0; chunk < 4; ++chunk)
    *reinterpret_cast<uint32_t*>(tile + row * 64 + swizzled_chunk(row, chunk) * 16 + quarter * 4) =
        chunks[chunk];
}

// A thread for each lane of each tile.  Scale: of the dtype, TileScale or Fp8Scale.
template <typename Scale>
__global__ void __launch_bounds__(kWidenThreads)
    widen_kernel(const uint2* from, const float* scales, int row_tiles, int64_t tiles, char* to) {
  wait_for_inputs();
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kWidenThreads + threadIdx.x, tile = i / 32;
  if (tile >= tiles) return;
  const int lane = static_cast<int>(i % 32);
  const Scale scale(__ldg(scales + tile / row_tiles * kTileOutputs + lane / 4));
  store_operand(to + tile * kTileBytes, lane, scale.weights(__ldg(from + i)));
}

// Behind `depth` the integers are 0, but the minimum is not.
__device__ uint32_t within(uint32_t two, int k, int depth) {
  return k + 1 < depth ? two : k < depth ? two & 0xffffu : 0;
}

template <typename T>
__global__ void __launch_bounds__(kWidenThreads)
    widen_int4_kernel(const char* from, MatrixShape shape, TileForm form, int64_t tiles, char* to) {
  wait_for_inputs();
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kWidenThreads + threadIdx.x, at = i / 32;
  if (at >= tiles) return;
  const auto row_tiles = static_cast<uint32_t>(shape.row_tiles()),
             tile_row = static_cast<uint32_t>(at) / row_tiles;
  const int lane = static_cast<int>(i % 32), tile = static_cast<int>(static_cast<uint32_t>(at) % row_tiles);
  const auto* const record =
      reinterpret_cast<const uint32_t*>(from + tile_row * form.row_bytes(row_tiles) + form.start_of(tile));
  const NibbleScale<T> scale(__ldg(record + lane / 4));
  uint4 v = scale.weights(
      __ldg(record + (kInt4HeadBytes + (tile & ((1 << form.shift) - 1)) * kInt4TileBytes) / 4 + lane));
  const int depth = static_cast<int>(shape.depth);
  if (const int k = tile * kTileInputs + lane % 4 * 2; k + 25 >= depth)
    v = {within(v.x, k, depth), within(v.y, k + 8, depth), within(v.z, k + 16, depth),
         within(v.w, k + 24, depth)};
  store_operand(to + at * kTileBytes, lane, v);
}

}  // namespace

Product widened(Context& ctx, Product product) {
  const MatrixShape& shape = product.shape;
  const int64_t tiles = shape.tile_rows() * shape.row_tiles();
  const TensorView wide = ctx.workspace->alloc(DType::u8, {shape.bytes()});
  // Products read their weights before they wait for the kernel before them.
  const Grid grid{.blocks = dim3(static_cast<unsigned>(blocks_for(tiles * 32, kWidenThreads))),
                  .threads = dim3(kWidenThreads),
                  .successor_starts_late = true};
  char* const to = static_cast<char*>(wide.data());
  with_operand_type(product.format.operand, [&](auto type) {
    using T = decltype(type);
    if (product.format.weights == DType::u4)
      launch(ctx, "widening of weights", grid, widen_int4_kernel<T>, static_cast<const char*>(product.weight),
             shape, form_of(product.format), tiles, to);
    else
      launch(ctx, "widening of weights", grid,
             product.format.weights == DType::f8 ? widen_kernel<Fp8Scale<T>> : widen_kernel<TileScale<T>>,
             static_cast<const uint2*>(product.weight), product.scales, static_cast<int>(shape.row_tiles()),
             tiles, to);
  });
  product.weight = wide.data();
  product.scales = nullptr;
  product.format = product.format.operand;
  return product;
}

}  // namespace shoal::ops::cuda
