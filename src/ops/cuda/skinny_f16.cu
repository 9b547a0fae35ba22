#include "ops/cuda/skinny_launch.cuh"

namespace shoal::ops::cuda {

template bool launch_skinny<__half, false>(Context& ctx, const SkinnyArguments& arguments);
template bool launch_skinny<__half, true>(Context& ctx, const SkinnyArguments& arguments);

}  // namespace shoal::ops::cuda
