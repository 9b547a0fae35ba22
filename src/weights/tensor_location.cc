#include "weights/tensor_location.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace shoal::weights {
namespace {

constexpr size_t kMaxNameBytes = 512;
constexpr int64_t kMaxTensorBytes = int64_t{1} << 62;

bool is_printable_ascii(char c) { return c >= 0x20 && c < 0x7f; }

}  // namespace

std::array<int64_t, Shape::kMaxRank> dense_strides(const Shape& shape) {
  std::array<int64_t, Shape::kMaxRank> strides{};
  int64_t stride = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    strides[static_cast<size_t>(axis)] = stride;
    stride *= std::max<int64_t>(shape[axis], 1);
  }
  return strides;
}

bool TensorLocation::is_dense() const {
  const auto dense = dense_strides(shape);
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const auto i = static_cast<size_t>(axis);
    if (shape[axis] > 1 && strides[i] != dense[i]) return false;
  }
  return true;
}

Tensor copy_dense(std::span<const std::byte> file, const TensorLocation& location) {
  Tensor copy(location.dtype, location.shape);
  const size_t item = static_cast<size_t>(size_of(location.dtype));
  const std::byte* source = file.data() + location.offset;
  auto* target = static_cast<std::byte*>(copy.view().data());
  if (location.is_dense()) {
    std::memcpy(target, source, static_cast<size_t>(copy.bytes()));
    return copy;
  }
  std::array<int64_t, Shape::kMaxRank> position{};
  for (int64_t left = location.shape.elements(), from = 0; left > 0; --left, target += item) {
    std::memcpy(target, source + from * static_cast<int64_t>(item), item);
    for (int axis = location.shape.rank() - 1; axis >= 0; --axis) {  // odometer: the last axis turns fastest
      const auto i = static_cast<size_t>(axis);
      from += location.strides[i];
      if (++position[i] < location.shape[axis]) break;
      from -= location.strides[i] * location.shape[axis];
      position[i] = 0;
    }
  }
  return copy;
}

Shape checked_shape(std::span<const int64_t> dims, DType dtype, std::string_view file,
                    std::string_view tensor) {
  if (dims.size() > Shape::kMaxRank)
    fail(ErrorCode::unsupported, file, ": tensor ", printable(tensor), ": expected at most ", Shape::kMaxRank,
         " dimensions, found ", dims.size());
  int64_t limit = kMaxTensorBytes / size_of(dtype);
  for (int64_t dim : dims) {
    if (dim < 0)
      fail(ErrorCode::corrupt_file, file, ": tensor ", printable(tensor), ": negative dimension ", dim);
    limit /= std::max<int64_t>(dim, 1);
  }
  if (limit == 0)
    fail(ErrorCode::corrupt_file, file, ": tensor ", printable(tensor), ": the shape ", Shape(dims),
         " has more elements than any file");
  return Shape(dims);
}

void check_tensor_name(std::string_view name, std::string_view file) {
  if (name.empty() || name.size() > kMaxNameBytes || !std::ranges::all_of(name, is_printable_ascii))
    fail(ErrorCode::corrupt_file, file, ": tensor name ", printable(name), ": expected 1 to ", kMaxNameBytes,
         " printable ASCII characters, found ", name.size(), " bytes");
}

std::string printable(std::string_view bytes) {
  constexpr size_t kShown = 80;
  constexpr char kHex[] = "0123456789abcdef";
  std::string text = "\"";
  for (char c : bytes.substr(0, kShown)) {
    const auto byte = static_cast<unsigned char>(c);
    if (is_printable_ascii(c) && c != '"' && c != '\\') {
      text += c;
    } else {
      text += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return text + (bytes.size() > kShown ? "...\"" : "\"");
}

}  // namespace shoal::weights
