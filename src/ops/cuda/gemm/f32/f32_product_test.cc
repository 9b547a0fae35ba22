// f32 products of few rows, of some hundreds and of very many have kernels of their own: a row's bits are the
// same in all of them.
#include <cmath>
#include <tuple>

#include "ops/conv1d.h"
#include "ops/cuda/device/cuda_testing.h"
#include "ops/linear.h"
#include "ops/matrix_testing.h"

namespace shoal::ops::cuda {
namespace {

constexpr int64_t kVeryMany = 27'000;  // 64 rows for each of two blocks of 200 multiprocessors, and some
constexpr int64_t kDilation = 2;

class F32Product : public CudaTest {
 protected:
  static std::vector<float> first(const std::vector<float>& rows, int64_t count, int64_t width) {
    return {rows.begin(), rows.begin() + count * width};
  }

  // y of the first rows of x, from rows that are `gap` floats wider.
  std::vector<float> product(const std::vector<float>& x, int64_t rows, const PackedMatrix& weight,
                             int64_t gap, const Epilogue& epilogue) {
    std::vector<float> wide;
    for (int64_t row = 0; row < rows; ++row) {
      wide.insert(wide.end(), x.begin() + row * weight.depth, x.begin() + (row + 1) * weight.depth);
      wide.insert(wide.end(), static_cast<size_t>(gap), NAN);
    }
    const Tensor in = put(wide, {rows, weight.depth + gap});
    const Tensor y =
        put(std::vector<float>(static_cast<size_t>(rows * weight.outputs), 0.5f), {rows, weight.outputs});
    linear(ctx(), in.view().columns(0, weight.depth), weight, y, epilogue);
    return get(y);
  }

  // Of the first rows of x, and of those that they look back at.
  std::vector<float> convolution(const std::vector<float>& x, int64_t rows, const PackedMatrix& weight) {
    const int64_t inputs = rows + (weight.taps - 1) * kDilation;
    const Tensor in = put(first(x, inputs, weight.depth), {inputs, weight.depth});
    const Tensor y(DType::f32, {rows, weight.outputs}, kDevice);
    valid_conv1d(ctx(), in, weight, kDilation, y);
    return get(y);
  }
};

TEST_F(F32Product, ARowIsTheSameAmongAnyNumberOfRows) {
  for (const auto& [outputs, depth] :
       {std::pair<int64_t, int64_t>{40, 200}, {64, 96}, {70, 33}, {3, 770}, {130, 1}}) {
    std::vector<float> x = random_values(kVeryMany * depth, 1), weights = random_values(outputs * depth, 2),
                       bias = random_values(outputs, 3);
    const PackedMatrix weight =
        pack_matrix(ctx(), view_of(weights, {outputs, depth}), view_of(bias, {outputs}), DType::f32);
    for (const Epilogue& epilogue :
         {Epilogue{}, Epilogue{.activation = Activation::gelu_tanh}, Epilogue{.accumulate = true}}) {
      const std::vector<float> all = product(x, kVeryMany, weight, 0, epilogue);
      for (const int64_t rows : {1, 7, 9, 31, 33, 64, 300})
        for (const int64_t gap : {0, 3, 4})
          expect_same_bits(product(x, rows, weight, gap, epilogue), first(all, rows, outputs));
    }
  }
}

TEST_F(F32Product, ARowOfAConvolutionIsTheSameAmongAnyNumberOfRows) {
  for (const auto& [outputs, depth, taps] :
       {std::tuple<int64_t, int64_t, int64_t>{40, 64, 3}, {33, 20, 11}, {64, 7, 2}, {5, 130, 7}}) {
    const int64_t inputs = kVeryMany + (taps - 1) * kDilation;
    std::vector<float> x = random_values(inputs * depth, 1),
                       weights = random_values(outputs * depth * taps, 2), bias = random_values(outputs, 3);
    const PackedMatrix weight =
        pack_conv1d(ctx(), view_of(weights, {outputs, depth, taps}), view_of(bias, {outputs}), DType::f32);
    const std::vector<float> all = convolution(x, kVeryMany, weight);
    for (const int64_t rows : {1, 9, 33, 300})
      expect_same_bits(convolution(x, rows, weight), first(all, rows, outputs));
  }
}

TEST_F(F32Product, HundredsOfRowsMatchTheOracle) {
  for (const auto& [rows, outputs, depth] :
       {std::tuple<int64_t, int64_t, int64_t>{9, 64, 64}, {112, 96, 768}, {70, 130, 100}, {33, 31, 2}}) {
    std::vector<float> x = random_values(rows * depth, 1), weights = random_values(outputs * depth, 2),
                       bias = random_values(outputs, 3);
    const PackedMatrix weight =
        pack_matrix(ctx(), view_of(weights, {outputs, depth}), view_of(bias, {outputs}), DType::f32);
    ref::Values want, bound;
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t n = 0; n < outputs; ++n) {
        double sum = bias[static_cast<size_t>(n)], size = std::abs(sum);
        for (int64_t k = 0; k < depth; ++k) {
          const double term = double{x[static_cast<size_t>(row * depth + k)]} *
                              double{weights[static_cast<size_t>(n * depth + k)]};
          sum += term, size += std::abs(term);
        }
        want.push_back(sum);
        bound.push_back(static_cast<double>(depth + 12) * kUnit * size);
      }
    expect_close(product(x, rows, weight, 0, {}), want, bound);
  }
}

}  // namespace
}  // namespace shoal::ops::cuda
