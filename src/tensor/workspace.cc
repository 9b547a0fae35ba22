#include "tensor/workspace.h"

#include <algorithm>

namespace shoal {
namespace {

constexpr int64_t kAlignment = 64, kDeviceAlignment = 256;
constexpr int64_t kSmallestBlock = int64_t{1} << 20;

}  // namespace

Workspace Workspace::page_locked(Device gpu, int64_t limit_bytes) {
  Workspace workspace({}, limit_bytes);
  workspace.locked_for_ = gpu;
  return workspace;
}

Workspace Workspace::counting(Device device) {
  Workspace workspace(device);
  workspace.counts_only_ = true;
  return workspace;
}

int64_t Workspace::aligned(int64_t bytes) const {
  const int64_t alignment = device_.kind == DeviceKind::cpu ? kAlignment : kDeviceAlignment;
  return (std::max<int64_t>(1, bytes) + alignment - 1) / alignment * alignment;
}

Buffer Workspace::block(int64_t bytes) const {
  return locked_for_ ? Buffer::page_locked(bytes, *locked_for_) : Buffer(bytes, device_);
}

int64_t Workspace::capacity_bytes() const {
  int64_t total = 0;
  for (const Buffer& block : blocks_) total += block.bytes();
  return total;
}

TensorView Workspace::alloc(DType dtype, Shape shape) {
  const int64_t bytes = aligned(shape.elements() * size_of(dtype));
  return TensorView(counts_only_ ? count(bytes) : take(bytes), dtype, shape, device_);
}

void* Workspace::array_bytes(int64_t bytes) {
  CHECK(device_.kind == DeviceKind::cpu, "an array of the host in a GPU's memory");
  if (counts_only_) count(aligned(bytes));
  return take(aligned(bytes));
}

void* Workspace::count(int64_t bytes) {
  counted_ += bytes;
  peak_ = std::max(peak_, counted_);
  return nullptr;
}

void* Workspace::take(int64_t bytes) {
  while (block_ < blocks_.size() && used_ + bytes > blocks_[block_].bytes()) {
    below_ += blocks_[block_].bytes();
    ++block_;
    used_ = 0;
  }
  if (block_ == blocks_.size()) grow(bytes);
  char* data = static_cast<char*>(blocks_[block_].data()) + used_;
  used_ += bytes;
  if (!counts_only_) peak_ = std::max(peak_, below_ + used_);
  return data;
}

void Workspace::grow(int64_t bytes) {
  const int64_t wanted = std::max({bytes, kSmallestBlock, capacity_bytes() / 2});
  if (limit_ > 0 && bytes > limit_ - capacity_bytes()) {
    fail(ErrorCode::resource_exhausted, "workspace: ", bytes, " more bytes would exceed its limit of ",
         limit_);
  }
  blocks_.push_back(block(limit_ > 0 ? std::min(wanted, limit_ - capacity_bytes()) : wanted));
  ++growths_;
}

void Workspace::reserve(int64_t bytes) {
  CHECK(empty(), "reserving in a workspace that is in use");
  if (blocks_.size() == 1 && blocks_[0].bytes() >= bytes) return;
  const int64_t wanted = std::max(bytes, capacity_bytes());
  if (wanted == 0) return;
  if (limit_ > 0 && wanted > limit_)
    fail(ErrorCode::resource_exhausted, "workspace: ", wanted, " bytes would exceed its limit of ", limit_);
  blocks_.clear();
  blocks_.push_back(block(wanted));
  ++growths_;
}

Workspace::Scope::Scope(Workspace& workspace)
    : workspace_(workspace), block_(workspace.block_), used_(workspace.used_), counted_(workspace.counted_) {
  if (workspace_.depth_ == 0 && workspace_.below_ + workspace_.used_ == 0) workspace_.reserve(0);
  ++workspace_.depth_;  // last: a scope whose merge throws is never left
}

Workspace::Scope::~Scope() {
  --workspace_.depth_;
  while (workspace_.block_ > block_) workspace_.below_ -= workspace_.blocks_[--workspace_.block_].bytes();
  workspace_.used_ = used_;
  workspace_.counted_ = counted_;
}

}  // namespace shoal
