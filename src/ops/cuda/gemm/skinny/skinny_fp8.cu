#include "ops/cuda/gemm/skinny/skinny_launch.cuh"

namespace shoal::ops::cuda {

template <typename T>
bool launch_skinny_fp8(Context& ctx, SkinnyArguments a, bool float_input) {
  return launch_skinny_weights<T, TileWeights::fp8>(ctx, a, float_input);
}

template bool launch_skinny_fp8<__nv_bfloat16>(Context&, SkinnyArguments, bool);
template bool launch_skinny_fp8<__half>(Context&, SkinnyArguments, bool);

}  // namespace shoal::ops::cuda
