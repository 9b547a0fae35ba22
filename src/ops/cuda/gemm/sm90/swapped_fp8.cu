#include "ops/cuda/gemm/sm90/swapped_launch.cuh"

namespace shoal::ops::cuda {

template void launch_swapped<__nv_bfloat16, TileWeights::fp8>(Context&, const SwappedArguments&, int64_t);
template void launch_swapped<__half, TileWeights::fp8>(Context&, const SwappedArguments&, int64_t);

}  // namespace shoal::ops::cuda
