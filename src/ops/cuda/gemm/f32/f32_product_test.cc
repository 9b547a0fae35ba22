// f32 products of few rows, of some hundreds and of very many have kernels of their own, on ordinary units
// and on tensor cores: a row's bits are the same in all of a kind.
#include "ops/cuda/gemm/f32/f32_product.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <tuple>

#include "ops/conv1d.h"
#include "ops/cuda/device/cuda_testing.h"
#include "ops/cuda/gemm/f32/tf32_product.h"
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

  using Kernel = void (*)(Context&, const Product&);
  // x: [rows, gap + depth], of which the first `gap` values of a row are not read.
  std::vector<float> by(Kernel kernel, const std::vector<float>& x, int64_t rows, int64_t gap,
                        const PackedMatrix& weight, const int32_t* first_rows = nullptr) {
    const int64_t outputs = weight.outputs, stride = weight.depth + gap;
    const Tensor in = put(x, {std::ssize(x) / stride, stride});
    const Tensor y = put(std::vector<float>(static_cast<size_t>(rows * outputs), NAN), {rows, outputs});
    Product product = with_input(product_by(weight, rows, into(y, weight)), in.view().columns(gap, stride));
    product.taps = {.first_rows = first_rows, .dilation = kDilation};
    kernel(ctx(), product);
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

// Both kinds, whatever the GPU would choose.
enum class Units { ordinary, tensor_cores };
class F32Kernels : public F32Product, public testing::WithParamInterface<Units> {
 protected:
  bool by_tensor_cores() const { return GetParam() == Units::tensor_cores; }
  Kernel few_rows() const { return by_tensor_cores() ? tf32_few_rows : f32_few_rows; }
  Kernel slices() const { return by_tensor_cores() ? tf32_slices : f32_slices; }
  Kernel blocks() const { return by_tensor_cores() ? tf32_blocks : f32_blocks; }

  // Tensor cores: what the split leaves out and cuts off are 8 units of each product, and cutting off nine
  // addends at the last bit of the largest 18; then one rounding for eight inputs.
  double units(int64_t depth, int64_t taps) const {
    const int64_t sums = by_tensor_cores() ? 26 + taps * ((depth + 7) / 8) : taps * depth;
    return static_cast<double>(sums + 11 + taps);
  }
};

struct F32Case {
  int64_t outputs, depth, taps;
};

// Random inputs (of each row the first `gap` values are not read), a matrix and the exact products.
struct F32Sample {
  F32Sample(Context& ctx, const F32Case& shape, int64_t rows, int64_t gap)
      : x(random_values((rows + (shape.taps - 1) * kDilation) * (shape.depth + gap), 1)) {
    const auto [outputs, depth, taps] = shape;
    std::vector<float> weights = random_values(outputs * depth * taps, 2), bias = random_values(outputs, 3);
    weight = taps == 1
                 ? pack_matrix(ctx, view_of(weights, {outputs, depth}), view_of(bias, {outputs}), DType::f32)
                 : pack_conv1d(ctx, view_of(weights, {outputs, depth, taps}), view_of(bias, {outputs}),
                               DType::f32);
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t n = 0; n < outputs; ++n) {
        double sum = bias[static_cast<size_t>(n)], size = std::abs(sum);
        for (int64_t tap = 0; tap < taps; ++tap)
          for (int64_t k = 0; k < depth; ++k) {
            const int64_t at = (row + tap * kDilation) * (depth + gap) + gap + k;
            const double term = double{x[static_cast<size_t>(at)]} *
                                double{weights[static_cast<size_t>((n * depth + k) * taps + tap)]};
            sum += term, size += std::abs(term);
          }
        want.push_back(sum);
        sizes.push_back(size);
      }
  }

  std::vector<float> x;
  PackedMatrix weight;
  ref::Values want, sizes;  // sizes: of the sums of magnitudes
};

TEST_P(F32Kernels, OfAKindGiveTheSameBitsNearTheExactSums) {
  for (const F32Case& shape :
       {F32Case{70, 768, 1}, {130, 33, 1}, {31, 2, 1}, {64, 2048, 1}, {33, 20, 11}, {96, 512, 3}})
    for (const int64_t rows : {1, 8, 100})
      for (const int64_t gap : {0, 3}) {
        const F32Sample sample(ctx(), shape, rows, gap);
        const std::vector<float> y = by(blocks(), sample.x, rows, gap, sample.weight);
        expect_same_bits(by(slices(), sample.x, rows, gap, sample.weight), y);
        if (shape.taps == 1 && rows <= kF32FewRows)
          expect_same_bits(by(few_rows(), sample.x, rows, gap, sample.weight), y);
        ref::Values bound;
        for (const double size : sample.sizes) bound.push_back(units(shape.depth, shape.taps) * kUnit * size);
        expect_close(y, sample.want, bound);
      }
}

TEST_P(F32Kernels, RowsThatATableNamesAreThoseRows) {
  constexpr int64_t kRows = 100;
  for (const F32Case& shape : {F32Case{70, 96, 1}, {33, 20, 11}, {96, 64, 3}}) {
    const F32Sample sample(ctx(), shape, kRows, 0);
    std::vector<int32_t> backwards;
    for (int32_t row = kRows; row-- > 0;) backwards.push_back(row);
    const Tensor table = put(backwards, {kRows});
    std::vector<float> want = by(blocks(), sample.x, kRows, 0, sample.weight);
    for (int64_t row = 0; row < kRows / 2; ++row)
      std::swap_ranges(want.begin() + row * shape.outputs, want.begin() + (row + 1) * shape.outputs,
                       want.end() - (row + 1) * shape.outputs);
    for (const Kernel kernel : {slices(), blocks()})
      expect_same_bits(by(kernel, sample.x, kRows, 0, sample.weight, table.view().as<int32_t>()), want);
  }
}

// Root of the mean square of what y is off.
double rms_error(const std::vector<float>& y, const ref::Values& want) {
  double squares = 0;
  for (size_t i = 0; i < y.size(); ++i) squares += (y[i] - want[i]) * (y[i] - want[i]);
  return std::sqrt(squares / static_cast<double>(y.size()));
}

// Fails if sums are left to the tensor cores, which cut off what they cannot keep.
TEST_F(F32Product, OnTensorCoresIsAsExactAsOnOrdinaryUnits) {
  constexpr int64_t kRows = 100;
  for (const F32Case& shape : {F32Case{70, kTf32Inputs, 1}, {70, 768, 1}, {64, 2048, 1}, {96, 512, 3}}) {
    const F32Sample sample(ctx(), shape, kRows, 0);
    const double ordinary = rms_error(by(f32_blocks, sample.x, kRows, 0, sample.weight), sample.want);
    const double tensor_cores = rms_error(by(tf32_blocks, sample.x, kRows, 0, sample.weight), sample.want);
    EXPECT_LE(tensor_cores, ordinary) << "of " << shape.depth << " inputs and " << shape.taps << " taps";
  }
}

TEST_P(F32Kernels, ANaNStaysInItsRowAndLargeNumbersStayFinite) {
  constexpr int64_t kRows = 5, kDepth = 40, kOutputs = 64;
  std::vector<float> x = random_values(kRows * kDepth, 1), weights = random_values(kOutputs * kDepth, 2),
                     bias = random_values(kOutputs, 3);
  const PackedMatrix weight =
      pack_matrix(ctx(), view_of(weights, {kOutputs, kDepth}), view_of(bias, {kOutputs}), DType::f32);
  const std::vector<float> before = by(blocks(), x, kRows, 0, weight);
  x[2 * kDepth + 7] = std::bit_cast<float>(0x7fffffff);  // as a GPU makes it
  x[4 * kDepth + 9] = 1e30f;
  for (const Kernel kernel : {few_rows(), slices(), blocks()}) {
    const std::vector<float> y = by(kernel, x, kRows, 0, weight);
    for (int64_t i = 0; i < kRows * kOutputs; ++i) {
      const auto at = static_cast<size_t>(i);
      if (i / kOutputs == 2)
        EXPECT_TRUE(std::isnan(y[at]));
      else if (i / kOutputs == 4)
        EXPECT_TRUE(std::isfinite(y[at]) && std::abs(y[at]) > 1e24f) << y[at];
      else
        EXPECT_EQ(y[at], before[at]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(OrdinaryUnits, F32Kernels, testing::Values(Units::ordinary));
INSTANTIATE_TEST_SUITE_P(TensorCores, F32Kernels, testing::Values(Units::tensor_cores));

}  // namespace
}  // namespace shoal::ops::cuda
