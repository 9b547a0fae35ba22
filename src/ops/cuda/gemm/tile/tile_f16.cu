#include "ops/cuda/gemm/tile/tile_launch.cuh"

namespace shoal::ops::cuda {

template void launch_tile<__half>(Context& ctx, int shape, bool split, const TileArguments& arguments);

}  // namespace shoal::ops::cuda
