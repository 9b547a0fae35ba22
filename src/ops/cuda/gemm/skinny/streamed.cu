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
    if (arguments.form.bits == 4)
      launch_streamed<T, 4>(ctx, arguments, blocks);
    else if (arguments.form.bits == 8)
      launch_streamed<T, 8>(ctx, arguments, blocks);
    else
      launch_streamed<T, 16>(ctx, arguments, blocks);
  });
  return true;
}

}  // namespace shoal::ops::cuda
