#include <algorithm>

#include "ops/cuda/device/launch.cuh"
#include "ops/cuda/gemm/operands/with_weights.cuh"
#include "ops/cuda/gemm/skinny/skinny_product.h"
#include "ops/cuda/gemm/skinny/streamed_cut.h"
#include "ops/cuda/gemm/skinny/streamed_product.h"

namespace shoal::ops::cuda {

bool streamed_product(Context& ctx, const Product& product, const RmsNorm* norm, int blocks) {
  const Machine machine = machine_of(ctx);
  SkinnyArguments arguments = skinny_arguments(product, norm);
  if (blocks <= 0) blocks = machine.multiprocessors;
  if (!machine.wgmma || !choose_stream(arguments, machine, blocks)) return false;
  blocks = std::min(blocks, static_cast<int>(blocks_for(arguments.tile_rows, arguments.block_rows)));
  with_weights(product.format, [&]<typename T, TileWeights kWeights> {
    launch_streamed<T, kWeights>(ctx, arguments, blocks);
  });
  return true;
}

}  // namespace shoal::ops::cuda
