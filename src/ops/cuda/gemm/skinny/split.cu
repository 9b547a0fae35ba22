#include <algorithm>

#include "ops/cuda/device/launch.cuh"
#include "ops/cuda/gemm/skinny/skinny_product.h"
#include "ops/cuda/gemm/skinny/split_cut.h"
#include "ops/cuda/gemm/skinny/split_product.h"
#include "ops/cuda/rows/with_type.cuh"

namespace shoal::ops::cuda {

bool split_product(Context& ctx, const Product& product, int clusters) {
  const Machine machine = machine_of(ctx);
  SkinnyArguments arguments = skinny_arguments(product, nullptr);
  if (clusters <= 0) clusters = machine.multiprocessors / kSplitBlocks;
  clusters = std::min(clusters, arguments.tile_rows);
  if (!machine.wgmma || !choose_split(arguments, machine, clusters)) return false;
  with_operand_type(product.format.operand, [&](auto type) {
    using T = decltype(type);
    switch (product.format.weights) {
      case DType::i8:
        return launch_split<T, TileWeights::int8>(ctx, arguments, clusters);
      case DType::f8:
        return launch_split<T, TileWeights::fp8>(ctx, arguments, clusters);
      case DType::u4:
        return launch_split<T, TileWeights::int4>(ctx, arguments, clusters);
      default:
        return launch_split<T, TileWeights::half>(ctx, arguments, clusters);
    }
  });
  return true;
}

}  // namespace shoal::ops::cuda
