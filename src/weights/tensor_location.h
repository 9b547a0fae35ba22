// The position of a tensor in a file: the result of every parser in this folder.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "tensor/dtype.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace shoal::weights {

// Already checked by the parser: every element lies inside the file, no two elements of one tensor share
// bytes, and no product of the dimensions overflows.
struct TensorLocation {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  std::array<int64_t, Shape::kMaxRank> strides{};  // in elements
  int64_t offset = 0;                              // bytes from the start of the file to element 0

  bool is_dense() const;
  bool is_aligned() const { return offset % size_of(dtype) == 0; }
  int64_t bytes() const { return shape.elements() * size_of(dtype); }
};

// Row-major strides of a shape.
std::array<int64_t, Shape::kMaxRank> dense_strides(const Shape& shape);

// The elements of a tensor that is misaligned or strided in the file, gathered into memory of their own.
Tensor copy_dense(std::span<const std::byte> file, const TensorLocation& location);

// A shape read from a file: at most five dimensions, none negative, and the bytes of the tensor (also with
// its zero dimensions taken as one, so that strides stay small) below 2^62. `file` and `tensor` are for
// messages. Throws Error: corrupt_file, unsupported (rank).
Shape checked_shape(std::span<const int64_t> dims, DType dtype, std::string_view file,
                    std::string_view tensor);

// A tensor name is 1 to 512 printable ASCII characters, so that it can stand in messages and listings as it
// is. Throws Error(corrupt_file).
void check_tensor_name(std::string_view name, std::string_view file);

// Foreign bytes made fit for a message: quoted, at most 80 of them, others than printable ASCII as \xNN.
std::string printable(std::string_view bytes);

}  // namespace shoal::weights
