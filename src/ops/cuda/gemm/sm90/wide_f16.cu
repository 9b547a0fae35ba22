#include "ops/cuda/gemm/sm90/wide_launch.cuh"

namespace shoal::ops::cuda {

template void launch_wide<__half>(Context& ctx, const WideChoice& choice, int64_t blocks,
                                  const WideArguments& arguments);

}  // namespace shoal::ops::cuda
