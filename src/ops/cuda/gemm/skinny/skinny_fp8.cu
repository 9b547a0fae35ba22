#include "ops/cuda/gemm/skinny/skinny_launch.cuh"

namespace shoal::ops::cuda {

template bool launch_skinny<__nv_bfloat16, TileWeights::fp8>(Context&, SkinnyArguments, bool);
template bool launch_skinny<__half, TileWeights::fp8>(Context&, SkinnyArguments, bool);

}  // namespace shoal::ops::cuda
