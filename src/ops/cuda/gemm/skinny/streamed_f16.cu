#include "ops/cuda/gemm/skinny/streamed_launch.cuh"

namespace shoal::ops::cuda {

template void launch_streamed<__half, TileWeights::half>(Context&, const SkinnyArguments&, int);

}  // namespace shoal::ops::cuda
