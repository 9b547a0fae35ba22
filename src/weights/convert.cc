#include "weights/convert.h"

#include <cstring>

#include "base/error.h"
#include "base/f16.h"

namespace shoal::weights {
namespace {

// 256 KiB of floats: long enough to hide the hand-out of a piece, short enough to share evenly.
constexpr int64_t kGrain = 65536;

void convert(TensorView stored, int64_t begin, int64_t end, float* __restrict out) {
  switch (stored.dtype()) {
    case DType::f32:
      std::memcpy(out + begin, stored.as<float>() + begin, static_cast<size_t>(end - begin) * sizeof(float));
      return;
    case DType::bf16: {
      const uint16_t* __restrict in = stored.as<uint16_t>();
      for (int64_t i = begin; i < end; ++i) out[i] = bf16_to_float(in[i]);
      return;
    }
    case DType::f16: {
      const uint16_t* __restrict in = stored.as<uint16_t>();
      for (int64_t i = begin; i < end; ++i) out[i] = f16_to_float(in[i]);
      return;
    }
    default:
      fail(ErrorCode::unsupported, "to_f32: expected F32, BF16 or F16, found ", name_of(stored.dtype()));
  }
}

}  // namespace

void to_f32(TensorView stored, std::span<float> out, ThreadTeam* team) {
  const int64_t count = stored.elements();
  CHECK(stored.is_contiguous() && std::ssize(out) == count, "to_f32 of ", stored.shape(), " into ",
        out.size());
  if (count == 0) return;
  if (!team || count <= kGrain) {
    convert(stored, 0, count, out.data());
  } else {
    team->parallel_for(count, kGrain,
                       [&](int64_t begin, int64_t end, int) { convert(stored, begin, end, out.data()); });
  }
}

Tensor to_f32(TensorView stored, ThreadTeam* team) {
  Tensor converted(DType::f32, stored.shape());
  to_f32(stored, converted.span<float>(), team);
  return converted;
}

}  // namespace shoal::weights
