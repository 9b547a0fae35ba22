#include "ops/attention_scratch.h"

#include <algorithm>

#include "ops/device_state.h"

namespace shoal::ops {

int64_t parked_bytes(Device device, const HeadLayout& layout, DType kv_dtype, int64_t rows,
                     int64_t positions) {
  // Of a whole GB202, the largest GPU that we compile for (NVIDIA RTX Blackwell architecture): an RTX 5090
  // has 170 of them, a B200 148, an H200 132.
  constexpr int64_t kMostMultiprocessors = 192;
  if (!computes_by_itself(device) || kv_dtype == DType::f32) return 0;
  const int64_t groups = std::min(rows * layout.kv_heads, kMostMultiprocessors);
  const int64_t chunks = (positions + kGpuAttentionChunk - 1) / kGpuAttentionChunk;
  return groups * (layout.heads / layout.kv_heads) * chunks * (layout.head_dim + 2) * size_of(DType::f32);
}

}  // namespace shoal::ops
