// 8-bit matrices in 16 bits, for the kernels that multiply those.
#include "ops/cuda/device/launch.cuh"
#include "ops/cuda/gemm/operands/int8_tile.cuh"
#include "ops/cuda/gemm/operands/products.h"
#include "ops/cuda/rows/with_type.cuh"

namespace shoal::ops::cuda {
namespace {

constexpr int kWidenThreads = 256;

// A thread for each lane of each tile.
template <typename T>
__global__ void __launch_bounds__(kWidenThreads)
    widen_kernel(const uint2* from, const float* scales, int row_tiles, int64_t tiles, char* to) {
  wait_for_inputs();
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kWidenThreads + threadIdx.x, tile = i / 32;
  if (tile >= tiles) return;
  const int lane = static_cast<int>(i % 32), row = lane / 4, quarter = lane % 4;
  const TileScale<T> scale(__ldg(scales + tile / row_tiles * kTileOutputs + row));
  const uint4 operand = scale.operand(__ldg(from + i));
  const uint32_t chunks[] = {operand.x, operand.y, operand.z, operand.w};
#pragma unroll
  for (int chunk = 0; chunk < 4; ++chunk)
    *reinterpret_cast<uint32_t*>(to + tile * kTileBytes + row * 64 + swizzled_chunk(row, chunk) * 16 +
                                 quarter * 4) = chunks[chunk];
}

}  // namespace

Product widened(Context& ctx, Product product) {
  const MatrixShape& shape = product.shape;
  const int64_t tiles = shape.tile_rows() * shape.row_tiles();
  const TensorView wide = ctx.workspace->alloc(DType::u8, {shape.bytes()});
  with_operand_type(product.format.operand, [&](auto type) {
    // Products read their weights before they wait for the kernel before them.
    launch(ctx, "widening of weights",
           Grid{.blocks = dim3(static_cast<unsigned>(blocks_for(tiles * 32, kWidenThreads))),
                .threads = dim3(kWidenThreads),
                .successor_starts_late = true},
           widen_kernel<decltype(type)>, static_cast<const uint2*>(product.weight), product.scales,
           static_cast<int>(shape.row_tiles()), tiles, static_cast<char*>(wide.data()));
  });
  product.weight = wide.data();
  product.scales = nullptr;
  product.format = product.format.operand;
  return product;
}

}  // namespace shoal::ops::cuda
