#include "ops/cuda/gemm/skinny/streamed_launch.cuh"

namespace shoal::ops::cuda {

template void launch_streamed<__nv_bfloat16, TileWeights::half>(Context&, const SkinnyArguments&, int);

}  // namespace shoal::ops::cuda
