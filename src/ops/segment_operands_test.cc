#include "ops/matrix_testing.h"
#include "ops/segment_norm.h"

namespace shoal::ops {
namespace {

using Floats = std::vector<float>;

constexpr float kNormEps = 1e-5f;

// Mismatched operands, and missing devices.
class SegmentOperands : public testing::Test, protected MatrixFixture {
 protected:
  static constexpr int64_t kRows = 10, kWidth = 4;

  void norm(TensorView from, TensorView with, TensorView to, const SegmentActivation& activation = {},
            float eps = kNormEps) {
    adain(ctx_, from, segments_, with, eps, activation, to);
  }
  void sum(std::span<const TensorView> terms, TensorView to) {
    segment_sum(ctx_, terms, segments_, 1, 1, to);
  }
  void twice(TensorView from, TensorView weight, TensorView bias, TensorView to) {
    double_rows(ctx_, from, segments_, weight, bias, to);
  }

  std::vector<int32_t> starts_ = {1, 6}, frames_ = {4, 3};
  Segments segments_{.starts = starts_, .frames = frames_, .total = kRows};
  Floats x_ = Floats(kRows * kWidth), y_ = Floats(2 * kRows * kWidth), style_ = Floats(4 * kWidth),
         w_ = Floats(3 * kWidth, 1.0f);
  TensorView x = view_of(x_, {kRows, kWidth}), long_y = view_of(y_, {2 * kRows, kWidth}),
             y = long_y.slice(0, kRows), style = view_of(style_, {2, 2 * kWidth}),
             w = view_of(w_, {3, kWidth}), row = TensorView::of(w_.data(), DType::f32, {kWidth});
  Tensor half_ = Tensor::zeros(DType::f16, {kRows, kWidth});
};

TEST_F(SegmentOperands, MismatchedShapesAreOurFault) {
  EXPECT_NO_THROW(norm(x, style, y));
  EXPECT_NO_THROW(norm(x, style, y, {.snake_alpha = row}));
  EXPECT_THROW(norm(x.slice(0, 9), style, y), Error);
  EXPECT_THROW(norm(x, style.slice(0, 1), y), Error);
  EXPECT_THROW(norm(x, style.columns(0, kWidth), y), Error);
  EXPECT_THROW(norm(x, style, y.slice(0, 9)), Error);
  EXPECT_THROW(norm(x.columns(0, 2), style.columns(0, 4), y.columns(0, 2)), Error);  // y is not dense
  EXPECT_THROW(norm(x, style, half_), Error);
  EXPECT_THROW(norm(half_, style, y), Error);
  EXPECT_THROW(norm(x, style, y, {.slope = 0.1f, .snake_alpha = row}), Error);
  EXPECT_THROW(norm(x, style, y, {.snake_alpha = TensorView::of(w_.data(), DType::f32, {3})}), Error);
  EXPECT_THROW(norm(x, style, y, {}, 0), Error);
  const std::vector<TensorView> terms = {x, y, x, x}, unequal = {x, y.columns(0, 2)};
  const std::span<const TensorView> all(terms);
  EXPECT_NO_THROW(sum(all.first(3), y));
  EXPECT_THROW(sum(all, y), Error);
  EXPECT_THROW(sum({}, y), Error);
  EXPECT_THROW(sum(unequal, y), Error);
  EXPECT_THROW(sum(all.first(1), half_), Error);
  EXPECT_THROW(sum(all.first(1), long_y), Error);
  EXPECT_NO_THROW(twice(x, w, row, long_y));
  EXPECT_THROW(twice(x, w, row, y), Error);
  EXPECT_THROW(twice(x, w.slice(0, 2), row, long_y), Error);
  EXPECT_THROW(twice(x, w, w, long_y), Error);
  EXPECT_THROW(twice(y, w, row, long_y), Error);  // one memory
  frames_ = {6, 3};
  EXPECT_THROW(norm(x, style, y), Error);
  EXPECT_THROW(sum(all.first(1), y), Error);
  EXPECT_THROW(twice(x, w, row, long_y), Error);
}

TEST_F(SegmentOperands, WithoutCudaTheOpsAreUnavailable) {
  ctx_.device = {DeviceKind::cuda, 0};
  const auto code_of = [](auto call) {
    try {
      call();
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::cancelled;
  };
  EXPECT_EQ(code_of([&] { norm(x, style, y); }), ErrorCode::internal);  // not readable by kernels
  int32_t tables[4] = {1, 6, 4, 3};
  segments_.tables = TensorView::of(tables, DType::i32, {2, 2});
  EXPECT_EQ(code_of([&] { norm(x, style, y); }), ErrorCode::unavailable);
  EXPECT_EQ(code_of([&] { norm(x, style, half_); }), ErrorCode::unavailable);
  EXPECT_EQ(code_of([&] { sum({&x, 1}, y); }), ErrorCode::unavailable);
  EXPECT_EQ(code_of([&] { twice(x, w, row, long_y); }), ErrorCode::unavailable);
}

}  // namespace
}  // namespace shoal::ops
