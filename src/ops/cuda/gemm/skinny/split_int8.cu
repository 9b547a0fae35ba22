#include "ops/cuda/gemm/skinny/split_launch.cuh"

namespace shoal::ops::cuda {

template void launch_split<__nv_bfloat16, TileWeights::int8>(Context&, const SkinnyArguments&, int);
template void launch_split<__half, TileWeights::int8>(Context&, const SkinnyArguments&, int);

}  // namespace shoal::ops::cuda
