// Tensor owns memory on one device; TensorView is a pointer with dtype, shape and strides, passed by value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/bf16.h"
#include "base/error.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace shoal {

enum class DeviceKind : uint8_t { cpu, cuda };

struct Device {
  DeviceKind kind = DeviceKind::cpu;
  int index = 0;
  friend bool operator==(const Device&, const Device&) = default;
};

namespace detail {
template <typename T>
constexpr bool matches(DType dtype) {
  if constexpr (std::is_same_v<T, float>) return dtype == DType::f32;
  if constexpr (std::is_same_v<T, double>) return dtype == DType::f64;
  if constexpr (std::is_same_v<T, uint16_t>) return dtype == DType::bf16 || dtype == DType::f16;
  if constexpr (std::is_same_v<T, int32_t>) return dtype == DType::i32;
  if constexpr (std::is_same_v<T, int64_t>) return dtype == DType::i64;
  if constexpr (std::is_same_v<T, int16_t>) return dtype == DType::i16;
  if constexpr (std::is_same_v<T, int8_t>) return dtype == DType::i8;
  if constexpr (std::is_same_v<T, uint8_t>)
    return dtype == DType::u8 || dtype == DType::boolean || dtype == DType::f8;
  return false;
}
}  // namespace detail

// Strides are in elements; the last dimension is always dense (stride 1). Whether an op reads or writes a
// view is said by the op's contract, not by the type. A default view is empty.
class TensorView {
 public:
  TensorView() = default;
  // Dense, row-major.
  TensorView(void* data, DType dtype, Shape shape, Device device = {});
  // Dense, row-major view of float / int32_t / ... memory.
  template <typename T>
  static TensorView of(T* data, DType dtype, Shape shape) {
    CHECK(detail::matches<std::remove_const_t<T>>(dtype));
    return TensorView(const_cast<std::remove_const_t<T>*>(data), dtype, shape);
  }

  void* data() const { return data_; }
  DType dtype() const { return dtype_; }
  Device device() const { return device_; }
  const Shape& shape() const { return shape_; }
  int rank() const { return shape_.rank(); }
  int64_t dim(int axis) const { return shape_[axis]; }
  int64_t stride(int axis) const { return strides_[static_cast<size_t>(axis < 0 ? axis + rank() : axis)]; }
  int64_t elements() const { return shape_.elements(); }
  int64_t bytes() const { return elements() * size_of(dtype_); }
  bool empty() const { return data_ == nullptr && rank() == 0; }
  // A shape without memory (Tensor::sized).
  bool is_sized_only() const { return data_ == nullptr && rank() > 0; }
  bool is_contiguous() const;

  // Typed pointer to the first element; CHECKs the dtype.
  template <typename T>
  T* as() const {
    CHECK(detail::matches<std::remove_const_t<T>>(dtype_), "dtype is ", name_of(dtype_));
    return static_cast<T*>(data_);
  }
  // Typed pointer to row i of the first dimension.
  template <typename T>
  T* row(int64_t i) const {
    return as<T>() + i * strides_[0];
  }

  // Rows [begin, end) of the first dimension.
  TensorView slice(int64_t begin, int64_t end) const;
  // Columns [begin, end) of the last dimension; strides stay.
  TensorView columns(int64_t begin, int64_t end) const;
  // The same contiguous memory under another shape.
  TensorView reshape(Shape shape) const;

 private:
  void* data_ = nullptr;
  DType dtype_ = DType::f32;
  Device device_;
  Shape shape_;
  std::array<int64_t, Shape::kMaxRank> strides_{};
};

// Memory of one device, not initialised. CPU: 64-byte aligned, backed by huge pages where the system grants
// them (2 MB and more). GPU: 256-byte aligned; work that uses it must be done before it dies.
class Buffer {
 public:
  Buffer() = default;
  // Throws Error: resource_exhausted, unavailable (no such device, or no CUDA in this build).
  Buffer(int64_t bytes, Device device);
  // Host memory (device() is the CPU) that `gpu` copies without the host's help. Plain memory for the CPU.
  static Buffer page_locked(int64_t bytes, Device gpu);
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  void* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  Device device() const { return device_; }

 private:
  void* data_ = nullptr;
  int64_t bytes_ = 0;
  Device device_;
  bool page_locked_ = false;
};

// Owns its memory; move-only.
class Tensor {
 public:
  Tensor() = default;
  // Uninitialised. Throws Error(resource_exhausted) when memory is refused.
  Tensor(DType dtype, Shape shape, Device device = {});
  static Tensor zeros(DType dtype, Shape shape, Device device = {});
  // Of at least one dimension, and without memory: bytes() says what it would take. What packs or moves
  // weights makes sized tensors of sized ones. For plans and inventories.
  static Tensor sized(DType dtype, Shape shape, Device device = {});

  TensorView view() const { return view_; }
  operator TensorView() const {
    return view_;
  }  // NOLINT(google-explicit-constructor): a Tensor is usable as its view
  const Shape& shape() const { return view_.shape(); }
  DType dtype() const { return view_.dtype(); }
  int64_t dim(int axis) const { return view_.dim(axis); }
  int64_t elements() const { return view_.elements(); }
  int64_t bytes() const { return view_.empty() ? 0 : view_.bytes(); }
  bool empty() const { return view_.empty(); }
  template <typename T>
  T* as() const {
    return view_.as<T>();
  }
  // Elements of a contiguous tensor as a span.
  template <typename T>
  std::span<T> span() const {
    return {view_.as<T>(), static_cast<size_t>(elements())};
  }

 private:
  Buffer buffer_;
  TensorView view_;
};

// to = from, between any devices; returns when it is done. Dense, of equal dtype and shape. For loading and
// tests: work given to streams that uses the memory must have been waited for (ops/transfer.h copies in
// stream order).
void copy(TensorView from, TensorView to);

}  // namespace shoal
