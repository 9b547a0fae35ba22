#include <cstring>

#include "ops/cuda_backend.h"
#include "tensor/device_memory.h"

namespace shoal::ops {

StepBlock::StepBlock(Context& ctx, int64_t bytes) : where_(ctx.device) {
  const bool planned = is_planning(ctx);
  host_ = Buffer::page_locked(bytes, planned ? Device() : where_);
  std::memset(host_.data(), 0, static_cast<size_t>(bytes));
  if (on_cpu(ctx) || planned) return;
  device_ = Buffer(bytes, where_);
  device_memory::zero(device_.data(), where_.index, bytes);
}

TensorView StepBlock::device(int64_t offset, DType dtype, Shape shape) const {
  char* const side = static_cast<char*>(where_.kind == DeviceKind::cpu ? host_.data() : device_.data());
  const TensorView view(side ? side + offset : nullptr, dtype, shape, where_);
  CHECK(offset >= 0 && offset % 16 == 0 && offset + view.bytes() <= bytes(), "step block: ", view.bytes(),
        " bytes at ", offset, " of ", bytes());
  return view;
}

void StepBlock::copy_to_device(Context& ctx, int64_t count) const { copy(ctx, host_, device_, count); }

void StepBlock::copy_to_host(Context& ctx, int64_t count) const { copy(ctx, device_, host_, count); }

void StepBlock::copy(Context& ctx, const Buffer& from, const Buffer& to, int64_t count) const {
  CHECK(count >= 0 && count <= bytes(), "step block: ", count, " bytes of ", bytes());
  if (on_cpu(ctx) || is_planning(ctx) || count == 0) return;
  const auto bytes_of = [&](const Buffer& side) {
    return TensorView(side.data(), DType::u8, {count}, side.device());
  };
  cuda::copy_in_order(ctx, bytes_of(from), bytes_of(to));
}

}  // namespace shoal::ops
