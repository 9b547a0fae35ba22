#include "ops/cuda/gemm/skinny/skinny_launch.cuh"

namespace shoal::ops::cuda {

template bool launch_skinny<__nv_bfloat16, TileWeights::int4>(Context&, SkinnyArguments, bool);
template bool launch_skinny<__half, TileWeights::int4>(Context&, SkinnyArguments, bool);

}  // namespace shoal::ops::cuda
