#include "ops/cuda/gemm/skinny/streamed_launch.cuh"

namespace shoal::ops::cuda {

template void launch_streamed<__half, 16>(Context&, const SkinnyArguments&, int);

}  // namespace shoal::ops::cuda
