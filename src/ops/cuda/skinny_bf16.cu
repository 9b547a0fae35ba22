#include "ops/cuda/skinny_launch.cuh"

namespace shoal::ops::cuda {

template bool launch_skinny<__nv_bfloat16, false>(Context& ctx, const SkinnyArguments& arguments);
template bool launch_skinny<__nv_bfloat16, true>(Context& ctx, const SkinnyArguments& arguments);

}  // namespace shoal::ops::cuda
