#include "tensor/tensor.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <utility>

#include "tensor/device_memory.h"

namespace shoal {
namespace {

constexpr int64_t kHugePage = int64_t{2} << 20;

int64_t round_up(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

void* allocate_host(int64_t bytes) {
  const int64_t alignment = bytes >= kHugePage ? kHugePage : 64;
  void* const memory = std::aligned_alloc(
      static_cast<size_t>(alignment), static_cast<size_t>(round_up(std::max<int64_t>(bytes, 1), alignment)));
  if (!memory) fail(ErrorCode::resource_exhausted, "out of memory: ", bytes, " bytes were refused");
  // Streaming through gigabytes of weights with 4 KB pages spends a tenth of the time on page walks.
  if (bytes >= kHugePage) madvise(memory, static_cast<size_t>(bytes), MADV_HUGEPAGE);
  return memory;
}

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
  if (data_) part.data_ = static_cast<char*>(data_) + begin * strides_[0] * size_of(dtype_);
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
  if (data_) part.data_ = static_cast<char*>(data_) + begin * size_of(dtype_);
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
  data_ =
      device.kind == DeviceKind::cpu ? allocate_host(bytes) : device_memory::allocate(bytes, device.index);
}

Buffer Buffer::page_locked(int64_t bytes, Device gpu) {
  CHECK(bytes >= 0, "bytes ", bytes);
  if (gpu.kind == DeviceKind::cpu) return Buffer(bytes, gpu);
  Buffer buffer;
  buffer.data_ = device_memory::allocate_page_locked(bytes, gpu.index);
  buffer.bytes_ = bytes;
  buffer.page_locked_ = true;
  return buffer;
}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(device_, other.device_);
  std::swap(page_locked_, other.page_locked_);
  return *this;
}

Buffer::~Buffer() {
  if (!data_) return;
  if (page_locked_) {
    device_memory::release_page_locked(data_);
  } else if (device_.kind == DeviceKind::cpu) {
    std::free(data_);
  } else {
    device_memory::release(data_);
  }
}

Tensor::Tensor(DType dtype, Shape shape, Device device)
    : buffer_(shape.elements() * size_of(dtype), device), view_(buffer_.data(), dtype, shape, device) {}

Tensor Tensor::zeros(DType dtype, Shape shape, Device device) {
  Tensor tensor(dtype, shape, device);
  if (device.kind == DeviceKind::cpu) {
    std::memset(tensor.view_.data(), 0, static_cast<size_t>(tensor.bytes()));
  } else {
    device_memory::zero(tensor.view_.data(), device.index, tensor.bytes());
  }
  return tensor;
}

Tensor Tensor::sized(DType dtype, Shape shape, Device device) {
  CHECK(shape.rank() > 0, "a tensor without memory needs dimensions");
  Tensor tensor;
  tensor.view_ = TensorView(nullptr, dtype, shape, device);
  return tensor;
}

void copy(TensorView from, TensorView to) {
  CHECK(from.dtype() == to.dtype() && from.shape() == to.shape(), "from ", name_of(from.dtype()),
        from.shape(), " to ", name_of(to.dtype()), to.shape());
  CHECK(from.is_contiguous() && to.is_contiguous(), "strided");
  if (from.bytes() == 0) return;
  if (from.device().kind == DeviceKind::cpu && to.device().kind == DeviceKind::cpu) {
    std::memcpy(to.data(), from.data(), static_cast<size_t>(from.bytes()));
  } else {
    device_memory::copy(from.data(), from.device(), to.data(), to.device(), from.bytes());
  }
}

}  // namespace shoal
