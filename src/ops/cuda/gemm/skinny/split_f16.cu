#include "ops/cuda/gemm/skinny/split_launch.cuh"

namespace shoal::ops::cuda {

template void launch_split<__half, TileWeights::half>(Context&, const SkinnyArguments&, int);

}  // namespace shoal::ops::cuda
