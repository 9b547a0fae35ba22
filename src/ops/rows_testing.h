// Rows of a wider matrix, for the tests of ops that take strided rows.
#pragma once

#include <algorithm>
#include <utility>

#include "ops/op_testing.h"
#include "ops/ref/vector.h"

namespace shoal::ops {

// Columns before and after a view: none, as many as keep it aligned for vectors, and fewer.
constexpr std::pair<int64_t, int64_t> kSurroundings[] = {{0, 0}, {4, 4}, {1, 2}, {3, 0}};

// Test: OpTest, or a test of a GPU alone.
template <typename Test>
class RowsTestOf : public Test {
 protected:
  // `rows` rows of dim values, `gap` columns apart, the first `skip` into the memory.
  struct Strided {
    Tensor memory;
    TensorView view;
  };
  Strided strided(std::span<const float> values, int64_t rows, int64_t dim, int64_t skip, int64_t gap) {
    const int64_t width = skip + dim + gap;
    std::vector<float> all(static_cast<size_t>(rows * width), kOutside);
    for (int64_t row = 0; row < rows; ++row)
      std::copy_n(values.data() + row * dim, dim, all.data() + row * width + skip);
    Strided result{this->put(all, {rows, width}), {}};
    result.view = result.memory.view().columns(skip, skip + dim);
    return result;
  }
  // Whether only the view was written.
  void expect_gaps_untouched(const Strided& rows) {
    const std::vector<float> all = this->get(rows.memory);
    EXPECT_EQ(std::ranges::count(all, kOutside), std::ssize(all) - rows.view.elements());
  }

 private:
  static constexpr float kOutside = -77.0f;
};

inline ref::Values values_of_row(const std::vector<float>& values, int64_t row, int64_t dim) {
  return {values.begin() + row * dim, values.begin() + (row + 1) * dim};
}

}  // namespace shoal::ops
