#include "ops/cuda/gemm/skinny/skinny_launch.cuh"

namespace shoal::ops::cuda {

template bool launch_skinny<__half, TileWeights::half>(Context&, SkinnyArguments, bool);

}  // namespace shoal::ops::cuda
