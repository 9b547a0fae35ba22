#include <algorithm>

#include "ops/cuda/device/launch.cuh"
#include "ops/cuda/gemm/skinny/skinny_product.h"
#include "ops/cuda/gemm/skinny/streamed_cut.h"
#include "ops/cuda/gemm/skinny/streamed_product.h"
#include "ops/cuda/rows/with_type.cuh"

namespace shoal::ops::cuda {

bool streamed_product(Context& ctx, const Product& product, const RmsNorm* norm, int blocks) {
  const Machine machine = machine_of(ctx);
  SkinnyArguments arguments = skinny_arguments(product, norm);
  if (blocks <= 0) blocks = machine.multiprocessors;
  if (!machine.wgmma || !choose_stream(arguments, machine, blocks)) return false;
  blocks = std::min(blocks, static_cast<int>(blocks_for(arguments.tile_rows, arguments.block_rows)));
  with_operand_type(product.format.operand, [&](auto type) {
    using T = decltype(type);
    switch (product.format.weights) {
      case DType::i8:
        return launch_streamed<T, TileWeights::int8>(ctx, arguments, blocks);
      case DType::f8:
        return launch_streamed<T, TileWeights::fp8>(ctx, arguments, blocks);
      case DType::u4:
        return launch_streamed<T, TileWeights::int4>(ctx, arguments, blocks);
      default:
        return launch_streamed<T, TileWeights::half>(ctx, arguments, blocks);
    }
  });
  return true;
}

}  // namespace shoal::ops::cuda
