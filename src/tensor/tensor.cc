#include "tensor/tensor.h"

#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <utility>

namespace shoal {
namespace {

constexpr int64_t kHugePage = int64_t{2} << 20;

int64_t round_up(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

}  // namespace

TensorView::TensorView(void* data, DType dtype, Shape shape, Device device)
    : data_(data), dtype_(dtype), device_(device), shape_(shape) {
  int64_t stride = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    strides_[static_cast<size_t>(axis)] = stride;
    stride *= shape[axis];
  }
}

bool TensorView::is_contiguous() const {
  int64_t stride = 1;
  for (int axis = rank() - 1; axis >= 0; --axis) {
    if (dim(axis) != 1 && strides_[static_cast<size_t>(axis)] != stride) return false;
    stride *= dim(axis);
  }
  return true;
}

TensorView TensorView::slice(int64_t begin, int64_t end) const {
  CHECK(rank() >= 1 && 0 <= begin && begin <= end && end <= dim(0), "slice ", begin, "..", end, " of ",
        shape_);
  TensorView part = *this;
  part.data_ = static_cast<char*>(data_) + begin * strides_[0] * size_of(dtype_);
  std::array<int64_t, Shape::kMaxRank> dims{};
  for (int axis = 0; axis < rank(); ++axis) dims[static_cast<size_t>(axis)] = dim(axis);
  dims[0] = end - begin;
  part.shape_ = Shape(std::span<const int64_t>(dims.data(), static_cast<size_t>(rank())));
  return part;
}

TensorView TensorView::columns(int64_t begin, int64_t end) const {
  CHECK(rank() >= 1 && 0 <= begin && begin <= end && end <= dim(-1), "columns ", begin, "..", end, " of ",
        shape_);
  TensorView part = *this;
  part.data_ = static_cast<char*>(data_) + begin * size_of(dtype_);
  std::array<int64_t, Shape::kMaxRank> dims{};
  for (int axis = 0; axis < rank(); ++axis) dims[static_cast<size_t>(axis)] = dim(axis);
  dims[static_cast<size_t>(rank() - 1)] = end - begin;
  part.shape_ = Shape(std::span<const int64_t>(dims.data(), static_cast<size_t>(rank())));
  return part;
}

TensorView TensorView::reshape(Shape shape) const {
  CHECK(is_contiguous() && shape.elements() == elements(), "reshape ", shape_, " to ", shape);
  return TensorView(data_, dtype_, shape, device_);
}

Buffer::Buffer(int64_t bytes, Device device) : bytes_(bytes), device_(device) {
  CHECK(bytes >= 0, "bytes ", bytes);
  if (device.kind != DeviceKind::cpu)
    fail(ErrorCode::unavailable, "device memory: this build has no CUDA backend; use --device cpu");
  const int64_t alignment = bytes >= kHugePage ? kHugePage : 64;
  data_ = std::aligned_alloc(static_cast<size_t>(alignment),
                             static_cast<size_t>(round_up(std::max<int64_t>(bytes, 1), alignment)));
  if (!data_) fail(ErrorCode::resource_exhausted, "out of memory: ", bytes, " bytes were refused");
  // Streaming through gigabytes of weights with 4 KB pages spends a tenth of the time on page walks.
  if (bytes >= kHugePage) madvise(data_, static_cast<size_t>(bytes), MADV_HUGEPAGE);
}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(device_, other.device_);
  return *this;
}

Buffer::~Buffer() { std::free(data_); }

Tensor::Tensor(DType dtype, Shape shape, Device device)
    : buffer_(shape.elements() * size_of(dtype), device), view_(buffer_.data(), dtype, shape, device) {}

Tensor Tensor::zeros(DType dtype, Shape shape, Device device) {
  Tensor tensor(dtype, shape, device);
  std::memset(tensor.view_.data(), 0, static_cast<size_t>(tensor.bytes()));
  return tensor;
}

}  // namespace shoal
