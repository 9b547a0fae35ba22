// What the tests of products of 8- and 4-bit weights share: every kernel gives the bits of 16-bit weights
// that were rounded to the same values before.
#pragma once

#include "ops/cuda/device/cuda_testing.h"
#include "ops/linear.h"
#include "ops/product_testing.h"
#include "ops/residual.h"

namespace shoal::ops::cuda {

class NarrowProducts : public CudaTest {
 protected:
  static constexpr int64_t kRowCounts[] = {1, 2, 7, 8, 9, 16, 17, 40, 64, 100, 300};

  // Two matrices of the same values: of fewer bits, and of 16.
  struct Both {
    PackedMatrix narrow, wide;
  };

  // f(matrix, y) of both, on top of the same values.
  template <typename Call>
  void expect_same(const Both& both, int64_t rows, int64_t outputs, Call call) {
    std::vector<float> results[2];
    for (const bool narrow : {true, false}) {
      const Tensor y = put(random_values(rows * outputs, 6), {rows, outputs});
      call(narrow ? both.narrow : both.wide, y);
      results[narrow] = get(y);
    }
    EXPECT_EQ(results[0], results[1]) << rows << " rows, " << outputs << " outputs of " << both.wide.depth;
  }

  void expect_same_products(const Both& both, DType operand) {
    const int64_t outputs = both.wide.outputs, depth = both.wide.depth;
    for (const int64_t rows : kRowCounts) {
      const Tensor x = put(random_values(rows * depth, 7), {rows, depth});
      expect_same(both, rows, outputs, [&](const PackedMatrix& w, TensorView y) { linear(ctx(), x, w, y); });
      expect_same(both, rows, outputs,
                  [&](const PackedMatrix& w, TensorView y) { linear(ctx(), x, w, y, {.accumulate = true}); });
      const Tensor narrow = put(random_values(rows * depth, 8), {rows, depth}, operand);
      expect_same(both, rows, outputs,
                  [&](const PackedMatrix& w, TensorView y) { linear(ctx(), narrow, w, y); });
    }
  }

  // Of a SwiGLU pair, with and without a norm before it, up to `most` rows.
  void expect_same_pairs(const Both& both, int64_t hidden, int64_t depth, int64_t most) {
    const Tensor weight = put(random_values(depth, 9), {depth});
    const RmsNorm norm{weight, 1e-6f};
    for (const int64_t rows : kRowCounts) {
      if (rows > most) break;
      const Tensor x = put(random_values(rows * depth, 7), {rows, depth});
      expect_same(both, rows, hidden,
                  [&](const PackedMatrix& w, TensorView y) { linear_swiglu(ctx(), x, w, y); });
      expect_same(both, rows, hidden,
                  [&](const PackedMatrix& w, TensorView y) { norm_swiglu(ctx(), x, norm, w, y); });
    }
  }

  // Sums that wait for the next norm, from 17 rows on. both: [dim, depth]; next: [256, dim].
  void expect_same_residuals(const Both& both, const Both& next, int64_t dim, DType operand) {
    const int64_t depth = both.wide.depth;
    const Tensor weight = put(random_values(dim, 9), {dim});
    for (const int64_t rows : kRowCounts) {
      const Tensor in = put(random_values(rows * depth, 7), {rows, depth}, operand);
      std::vector<float> results[2];
      for (const bool narrow : {true, false}) {
        const Workspace::Scope scope(*ctx().workspace);
        const Tensor x = put(random_values(rows * dim, 6), {rows, dim}), y = garbage({rows, 256});
        Residual stream(ctx(), x, operand);
        add_linear(ctx(), in, narrow ? both.narrow : both.wide, stream);
        norm_linear(ctx(), stream, {weight, 1e-6f}, narrow ? next.narrow : next.wide, y);
        results[narrow] = get(y);
      }
      EXPECT_EQ(results[0], results[1]) << rows;
    }
  }
};

}  // namespace shoal::ops::cuda
