// The extents of a tensor: at most five dimensions, stored inline.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <ostream>
#include <span>

#include "base/error.h"

namespace shoal {

class Shape {
 public:
  static constexpr int kMaxRank = 5;

  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) : Shape(std::span<const int64_t>(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const int64_t> dims) {
    CHECK(dims.size() <= kMaxRank, "rank ", dims.size());
    for (int64_t dim : dims) dims_[static_cast<size_t>(rank_++)] = dim;
  }

  int rank() const { return rank_; }
  // axis < 0 counts from the end.
  int64_t operator[](int axis) const { return dims_[static_cast<size_t>(axis < 0 ? axis + rank_ : axis)]; }
  std::span<const int64_t> dims() const { return {dims_.data(), static_cast<size_t>(rank_)}; }

  // Product of the dimensions (1 for a scalar). The caller has bounded them: no overflow check here.
  int64_t elements() const {
    int64_t product = 1;
    for (int64_t dim : dims()) product *= dim;
    return product;
  }

  friend bool operator==(const Shape& a, const Shape& b) {
    return a.rank_ == b.rank_ && std::equal(a.dims().begin(), a.dims().end(), b.dims().begin());
  }
  // "[2, 3]"
  friend std::ostream& operator<<(std::ostream& out, const Shape& shape) {
    out << '[';
    for (int axis = 0; axis < shape.rank(); ++axis) out << (axis ? ", " : "") << shape[axis];
    return out << ']';
  }

 private:
  std::array<int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

}  // namespace shoal
