// Shared by the tests of the matrix ops: random operands, bounds, a context on the CPU.
#pragma once

#include <algorithm>
#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <vector>

#include "base/bf16.h"
#include "ops/cpu_features.h"
#include "ops/packed_matrix.h"
#include "ops/ref/matrix.h"

namespace shoal::ops {

constexpr double kUnit = 0x1p-24;  // half an ulp of f32 relative to its value

inline std::vector<float> random_values(int64_t count, unsigned seed, float scale = 1.0f) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0.0f, scale);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = normal(generator);
  return values;
}

// As a matrix of this dtype sees its operands.
inline ref::Values rounded(const std::vector<float>& values, DType dtype) {
  ref::Values wide;
  for (const float value : values) wide.push_back(dtype == DType::bf16 ? round_to_bf16(value) : value);
  return wide;
}

inline ref::Values wide(const std::vector<float>& values) { return {values.begin(), values.end()}; }

inline ref::Values magnitudes(ref::Values values) {
  for (double& value : values) value = std::abs(value);
  return values;
}

inline TensorView view_of(std::vector<float>& values, Shape shape) {
  CHECK(shape.elements() == static_cast<int64_t>(values.size()));
  return TensorView::of(values.data(), DType::f32, shape);
}

// |got - want| <= bound, element by element; reports the worst.
inline void expect_close(const std::vector<float>& got, const ref::Values& want, const ref::Values& bound) {
  ASSERT_EQ(got.size(), want.size());
  ASSERT_EQ(got.size(), bound.size());
  double worst = 0;
  size_t where = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double excess = std::abs(got[i] - want[i]) / bound[i];
    if (!(excess <= worst)) worst = excess, where = i;
  }
  EXPECT_LE(worst, 1.0) << "element " << where << ": got " << got[where] << ", want " << want[where] << " +- "
                        << bound[where];
}

inline void expect_same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i)
    ASSERT_EQ(std::bit_cast<uint32_t>(a[i]), std::bit_cast<uint32_t>(b[i]))
        << "element " << i << ": " << a[i] << " and " << b[i];
}

// A sum of `terms` rounded products in any order is within (terms + 2) units of the sum of magnitudes (to
// first order); 2 more for the bias.
inline ref::Values sum_bound(const ref::Values& magnitude, int64_t terms) {
  ref::Values bound;
  for (const double m : magnitude) bound.push_back(static_cast<double>(terms + 4) * kUnit * m + 1e-37);
  return bound;
}

// A context with a small team; the instruction set goes back to the best one afterwards.
class MatrixFixture {
 protected:
  ~MatrixFixture() { set_cpu_isa(best_cpu_isa()); }

  PackedMatrix pack(std::vector<float>& weight, Shape shape, std::vector<float>& bias, DType dtype) {
    return pack_matrix(ctx_, view_of(weight, shape), bias_view(bias), dtype);
  }
  static TensorView bias_view(std::vector<float>& bias) {
    return bias.empty() ? TensorView() : view_of(bias, {static_cast<int64_t>(bias.size())});
  }

  ThreadTeam team_{2};
  Workspace workspace_;
  Context ctx_{.device = {}, .team = &team_, .workspace = &workspace_};
};

}  // namespace shoal::ops
