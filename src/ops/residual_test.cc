#include "ops/residual.h"

#include "ops/matrix_testing.h"

namespace shoal::ops {
namespace {

class ResidualOnTheCpu : public MatrixTest {};

TEST_P(ResidualOnTheCpu, ComputesTheSumAndItsNormedProducts) {
  constexpr int64_t kRows = 20, kDim = 48, kDepth = 64;
  std::vector<float> w = random_values(kDim * kDepth, 1), head_w = random_values(24 * kDim, 2), none;
  std::vector<float> in = random_values(kRows * kDepth, 3), x = random_values(kRows * kDim, 4), at_once = x;
  std::vector<float> norm_weight = random_values(kDim, 5), y(kRows * 24), want(kRows * 24);
  const PackedMatrix out = pack(w, {kDim, kDepth}, none, GetParam().dtype);
  const PackedMatrix head = pack(head_w, {24, kDim}, none, GetParam().dtype);
  const RmsNorm norm{view_of(norm_weight, {kDim}), 1e-6f};

  Residual stream(ctx_, view_of(x, {kRows, kDim}), DType::f32);
  add_linear(ctx_, view_of(in, {kRows, kDepth}), out, stream);
  norm_linear(ctx_, stream, norm, head, view_of(y, {kRows, 24}));
  EXPECT_EQ(settled(ctx_, stream).data(), x.data());

  const TensorView added = view_of(at_once, {kRows, kDim});
  linear(ctx_, view_of(in, {kRows, kDepth}), out, added, {.accumulate = true});
  norm_linear(ctx_, added, norm, head, view_of(want, {kRows, 24}));
  expect_same_bits(x, at_once);
  expect_same_bits(y, want);
}

TEST_P(ResidualOnTheCpu, StreamsMustBeContiguousFloats) {
  std::vector<float> x(60);
  const TensorView rows = view_of(x, {3, 20});
  EXPECT_THROW(Residual(ctx_, rows.columns(0, 10), DType::f32), Error);
  EXPECT_THROW(Residual(ctx_, rows.reshape({60}), DType::f32), Error);
}

INSTANTIATE_TEST_SUITE_P(Cpu, ResidualOnTheCpu, testing::ValuesIn(matrix_cases()), name_of_case);

}  // namespace
}  // namespace shoal::ops
