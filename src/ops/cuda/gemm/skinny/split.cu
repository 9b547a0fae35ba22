#include <algorithm>

#include "ops/cuda/device/launch.cuh"
#include "ops/cuda/gemm/operands/with_weights.cuh"
#include "ops/cuda/gemm/skinny/skinny_product.h"
#include "ops/cuda/gemm/skinny/split_cut.h"
#include "ops/cuda/gemm/skinny/split_product.h"

namespace shoal::ops::cuda {

bool split_product(Context& ctx, const Product& product, int clusters) {
  const Machine machine = machine_of(ctx);
  SkinnyArguments arguments = skinny_arguments(product, nullptr);
  if (clusters <= 0) clusters = machine.multiprocessors / kSplitBlocks;
  clusters = std::min(clusters, arguments.tile_rows);
  if (!machine.wgmma || !choose_split(arguments, machine, clusters)) return false;
  with_weights(product.format, [&]<typename T, TileWeights kWeights> {
    launch_split<T, kWeights>(ctx, arguments, clusters);
  });
  return true;
}

}  // namespace shoal::ops::cuda
