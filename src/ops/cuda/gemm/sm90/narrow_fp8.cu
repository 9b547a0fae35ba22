#include "ops/cuda/gemm/sm90/narrow_launch.cuh"

namespace shoal::ops::cuda {

template void launch_narrow<__nv_bfloat16, TileWeights::fp8>(Context&, const NarrowArguments&, int64_t);
template void launch_narrow<__half, TileWeights::fp8>(Context&, const NarrowArguments&, int64_t);

}  // namespace shoal::ops::cuda
