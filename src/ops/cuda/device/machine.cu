#include "ops/cuda/device/machine.h"
#include "ops/cuda/device/stream_state.h"

namespace shoal::ops::cuda {

Machine machine_of(const Context& ctx) {
  const StreamState& stream = state_of(ctx);
  return {stream.multiprocessors(), stream.most_shared_bytes(), has_wgmma(ctx), stream.architecture()};
}

bool has_wgmma(const Context& ctx) {
#if defined(SHOAL_CUDA_90A)
  return state_of(ctx).architecture() == 90;
#else
  (void)ctx;
  return false;
#endif
}

}  // namespace shoal::ops::cuda
