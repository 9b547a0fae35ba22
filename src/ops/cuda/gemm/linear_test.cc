#include "ops/linear.h"

#include <numeric>

#include "ops/cuda/device/cuda_testing.h"
#include "ops/matrix_testing.h"
#include "ops/norm.h"
#include "ops/transfer.h"

namespace shoal::ops::cuda {
namespace {

struct Size {
  int64_t rows, outputs, depth;
};

// Few rows and many; rows of tiles in ones, twos, fours and sixes to a block; sums of one tile and of
// segments of many; inputs that end within a tile and within eight.
constexpr Size kAwkward[] = {{1, 1, 1},      {3, 12, 40},    {5, 40, 12},    {7, 17, 33},   {16, 96, 96},
                             {17, 12, 40},   {4, 1000, 257}, {9, 2200, 40},  {2, 4300, 64}, {16, 6500, 32},
                             {40, 96, 1000}, {33, 70, 31},   {16, 24, 3104}, {8, 9, 4128},  {65, 200, 264},
                             {40, 96, 1024}, {64, 70, 512}};

// What a sum over `terms` inputs may be off by, in units of the sum of magnitudes. The tensor cores add 16
// products and the sum so far after cutting all of them off at the last bit of the largest: 17 times two
// units for each 16 inputs, of which whole tiles are counted. Eight additions of segments and the bias come
// after.
ref::Values product_bound(const ref::Values& magnitude, int64_t terms, DType dtype) {
  const int64_t units = dtype == DType::f32 ? terms + 16 : 34 * 2 * ((terms + 31) / 32) + 16;
  ref::Values bound;
  for (const double m : magnitude) bound.push_back(static_cast<double>(units) * kUnit * m + 1e-37);
  return bound;
}

class CudaLinear : public CudaTest, public testing::WithParamInterface<DType> {
 protected:
  struct Operands {
    std::vector<float> x, w, bias;
  };
  static DType dtype() { return GetParam(); }

  static Operands random_operands(Size size) {
    const auto seed = static_cast<unsigned>(size.rows * 7 + size.outputs * 3 + size.depth);
    return {random_values(size.rows * size.depth, seed),
            random_values(size.outputs * size.depth, seed + 1, 0.3f), random_values(size.outputs, seed + 2)};
  }
  PackedMatrix pack(Operands& o, Size size) {
    return pack_matrix(ctx(), view_of(o.w, {size.outputs, size.depth}),
                       o.bias.empty() ? TensorView() : view_of(o.bias, {size.outputs}), dtype());
  }
  // y is what it holds before.
  std::vector<float> run(TensorView x, const PackedMatrix& weight, const Epilogue& epilogue = {},
                         std::vector<float> y = {}) {
    y.resize(static_cast<size_t>(x.dim(0) * weight.outputs), NAN);
    const Tensor out = put(y, {x.dim(0), weight.outputs});
    linear(ctx(), x, weight, out, epilogue);
    return get(out);
  }

  static ref::Values narrow(const std::vector<float>& values) { return wide(rounded_to(values, dtype())); }
  static ref::Values expected(const Operands& o, int64_t depth) {
    return ref::linear(narrow(o.x), narrow(o.w), wide(o.bias), depth);
  }
  static ref::Values bound(const Operands& o, int64_t depth) {
    return product_bound(
        ref::linear(magnitudes(narrow(o.x)), magnitudes(narrow(o.w)), magnitudes(wide(o.bias)), depth), depth,
        dtype());
  }
};

TEST_P(CudaLinear, MatchesTheReferenceAtAwkwardSizes) {
  for (const Size size : kAwkward) {
    SCOPED_TRACE(testing::Message() << size.rows << " x " << size.outputs << " x " << size.depth);
    Operands o = random_operands(size);
    if (size.outputs == 17) o.bias.clear();
    expect_close(run(put(o.x, {size.rows, size.depth}), pack(o, size)), expected(o, size.depth),
                 bound(o, size.depth));
  }
}

TEST_P(CudaLinear, EveryNumberOfRows) {
  for (const auto [outputs, depth] : {std::array<int64_t, 2>{12, 40}, {1000, 96}, {40, 1000}}) {
    const Size size{40, outputs, depth};
    Operands o = random_operands(size);
    const PackedMatrix weight = pack(o, size);
    const Tensor x = put(o.x, {40, depth});
    const std::vector<float> all = run(x, weight);
    expect_close(all, expected(o, depth), bound(o, depth));
    for (int64_t rows = 1; rows < 40; ++rows) {
      SCOPED_TRACE(testing::Message() << rows << " rows of " << outputs << " x " << depth);
      expect_same_bits(run(x.view().slice(0, rows), weight), {all.begin(), all.begin() + rows * outputs});
    }
  }
}

TEST_P(CudaLinear, AloneIsAsInABatch) {
  for (const auto [outputs, depth] : {std::array<int64_t, 2>{1000, 1000}, {24, 3072}, {70, 36}, {9, 12}}) {
    SCOPED_TRACE(testing::Message() << outputs << " x " << depth);
    const Size size{100, outputs, depth};
    Operands o = random_operands(size);
    const PackedMatrix weight = pack(o, size);
    const Tensor x = put(o.x, {100, depth});
    const Epilogue epilogue{.activation = Activation::gelu};
    const std::vector<float> all = run(x, weight, epilogue);
    for (const int64_t together : {1, 3, 16, 50}) {
      std::vector<float> parts;
      for (int64_t row = 0; row < 100; row += together) {
        const std::vector<float> part =
            run(x.view().slice(row, std::min<int64_t>(100, row + together)), weight, epilogue);
        parts.insert(parts.end(), part.begin(), part.end());
      }
      SCOPED_TRACE(testing::Message() << together << " together");
      expect_same_bits(parts, all);
    }
  }
}

// A producer may write 16 bits at once; rows may lie anywhere. The product sees the same numbers.
TEST_P(CudaLinear, AnyInputThatRoundsToTheSameGivesTheSame) {
  for (const Size size : {Size{5, 40, 64}, {5, 40, 37}, {30, 40, 64}, {30, 40, 37}}) {
    SCOPED_TRACE(testing::Message() << size.rows << " x " << size.outputs << " x " << size.depth);
    Operands o = random_operands(size);
    const PackedMatrix weight = pack(o, size);
    const std::vector<float> want = run(put(o.x, {size.rows, size.depth}), weight);
    expect_same_bits(run(put(o.x, {size.rows, size.depth}, dtype()), weight), want);
    for (const int64_t offset : {1, 3, 8}) {
      const int64_t stride = size.depth + 16 + offset;
      std::vector<float> wider(static_cast<size_t>(size.rows * stride), NAN);
      for (int64_t row = 0; row < size.rows; ++row)
        std::copy_n(&o.x[static_cast<size_t>(row * size.depth)], size.depth,
                    &wider[static_cast<size_t>(row * stride + offset)]);
      for (const DType input : {DType::f32, dtype()}) {
        const Tensor x = put(wider, {size.rows, stride}, input);
        expect_same_bits(run(x.view().columns(offset, offset + size.depth), weight), want);
      }
    }
  }
}

TEST_P(CudaLinear, WritesNothingBesidesItsRows) {
  for (const int64_t rows : {5, 30}) {
    const Size size{rows, 37, 40};
    Operands o = random_operands(size);
    const PackedMatrix weight = pack(o, size);
    const Tensor x = put(o.x, {rows, 40});
    const Tensor y = put(std::vector<float>(static_cast<size_t>((rows + 1) * 60), 7.0f), {rows + 1, 60});
    linear(ctx(), x, weight, y.view().slice(0, rows).columns(11, 48));
    std::vector<float> inside, outside;
    const std::vector<float> all = get(y);
    for (size_t i = 0; i < all.size(); ++i) {
      const bool in = i / 60 < static_cast<size_t>(rows) && i % 60 >= 11 && i % 60 < 48;
      (in ? inside : outside).push_back(all[i]);
    }
    expect_same_bits(inside, run(x, weight));
    EXPECT_THAT(outside, testing::Each(7.0f));
  }
}

TEST_P(CudaLinear, Epilogues) {
  for (const int64_t rows : {4, 20}) {
    const Size size{rows, 35, 70};
    Operands o = random_operands(size);
    const PackedMatrix weight = pack(o, size);
    const Tensor x = put(o.x, {rows, 70});
    const std::vector<float> scale = random_values(35, 8), y0 = random_values(rows * 35, 9);
    const Tensor scale_there = put(scale, {35});
    const ref::Values product = expected(o, size.depth), error = bound(o, size.depth);
    for (const Activation activation :
         {Activation::none, Activation::gelu, Activation::gelu_tanh, Activation::tanh}) {
      for (const bool accumulate : {false, true}) {
        for (const bool scaled : {false, true}) {
          const Epilogue epilogue{activation, accumulate, scaled ? scale_there.view() : TensorView()};
          ref::Values want, allowed;
          for (size_t i = 0; i < product.size(); ++i) {
            const double v = product[i], s = scaled ? scale[i % 35] : 1.0, start = accumulate ? y0[i] : 0.0;
            double a = v, slope = 1.0;  // of the activation, at most
            if (activation == Activation::gelu) a = ref::gelu(v), slope = 1.13;
            if (activation == Activation::gelu_tanh) a = ref::gelu_tanh(v), slope = 1.13;
            if (activation == Activation::tanh) a = std::tanh(v);
            want.push_back(start + s * a);
            // Eight units for the function itself (2 ulp, and the roundings around it), two for scaling and
            // sum.
            const double own = activation == Activation::none ? 0.0 : 8 * kUnit * (std::abs(v) + 1.0);
            allowed.push_back(std::abs(s) * (slope * error[i] + own) +
                              2 * kUnit * (std::abs(start) + std::abs(s * a)) + 1e-30);
          }
          SCOPED_TRACE(testing::Message() << rows << " rows, activation " << static_cast<int>(activation)
                                          << ' ' << accumulate << ' ' << scaled);
          expect_close(run(x, weight, epilogue, accumulate ? y0 : std::vector<float>{}), want, allowed);
        }
      }
    }
  }
}

class CudaSwiglu : public CudaLinear {
 protected:
  PackedMatrix pack_pair(std::vector<float>& gate, std::vector<float>& up, Shape shape) {
    return pack_gate_up(ctx(), view_of(gate, shape), view_of(up, shape), dtype());
  }
  std::vector<float> run_pair(TensorView x, const PackedMatrix& pair, DType y_dtype = DType::f32) {
    const std::vector<float> unwritten(static_cast<size_t>(x.dim(0) * pair.outputs), NAN);
    const Tensor y = put(unwritten, {x.dim(0), pair.outputs}, y_dtype);
    linear_swiglu(ctx(), x, pair, y);
    return get(y);
  }
};

TEST_P(CudaSwiglu, MatchesTheReference) {
  for (const Size size : {Size{1, 1, 1},
                          {3, 17, 33},
                          {19, 80, 64},
                          {16, 1000, 40},
                          {2, 3300, 40},
                          {50, 100, 257},
                          {50, 100, 512}}) {
    SCOPED_TRACE(testing::Message() << size.rows << " x " << size.outputs << " x " << size.depth);
    Operands gate = random_operands(size), up = random_operands({size.rows, size.outputs, size.depth + 1});
    up.w.resize(gate.w.size());
    gate.bias.clear(), up.bias.clear();
    up.x = gate.x;
    const PackedMatrix pair = pack_pair(gate.w, up.w, {size.outputs, size.depth});
    const Tensor x = put(gate.x, {size.rows, size.depth});
    const std::vector<float> got = run_pair(x, pair);
    const ref::Values g = expected(gate, size.depth), u = expected(up, size.depth);
    const ref::Values g_error = bound(gate, size.depth), u_error = bound(up, size.depth);
    ref::Values want, allowed;
    for (size_t i = 0; i < g.size(); ++i) {
      want.push_back(ref::silu(g[i]) * u[i]);
      // silu's slope is at most 1.1; eight units for the function and the product.
      allowed.push_back(1.1 * g_error[i] * (std::abs(u[i]) + u_error[i]) +
                        std::abs(ref::silu(g[i])) * u_error[i] + 8 * kUnit * std::abs(want[i]) + 1e-30);
    }
    expect_close(got, want, allowed);
    for (const DType narrow_dtype : {DType::bf16, DType::f16})
      expect_same_bits(run_pair(x, pair, narrow_dtype), rounded_to(got, narrow_dtype));
  }
}

// The exponential of a gate is no divisor where it is too large: 2^126 takes its place.
TEST_P(CudaSwiglu, GatesBeyondExponentialsAreNumbersNearTheirValue) {
  std::vector<float> gate = {-30000, -1000, -200, -89, -88, -87.5, -87, -86, -40,
                             -1,     0,     1,    40,  86,  87,    88,  89,  1000};
  gate = rounded_to(gate, dtype());
  std::vector<float> up(gate.size(), 2.0f);
  const auto outputs = static_cast<int64_t>(gate.size());
  const PackedMatrix pair = pack_pair(gate, up, {outputs, 1});
  for (const int64_t rows : {1, 20, 100}) {
    const Tensor x = put(std::vector<float>(static_cast<size_t>(rows), 1.0f), {rows, 1});
    ref::Values want, allowed;
    for (int64_t row = 0; row < rows; ++row)
      for (const float g : gate) {
        want.push_back(2 * ref::silu(g));
        allowed.push_back(8 * kUnit * std::abs(want.back()) + std::abs(g) * 0x1p-124);
      }
    expect_close(run_pair(x, pair), want, allowed);
  }
}

TEST_P(CudaSwiglu, AloneIsAsInABatch) {
  const Size size{100, 70, 1000};
  Operands gate = random_operands(size), up = random_operands({100, 70, 1001});
  up.w.resize(gate.w.size());
  const PackedMatrix pair = pack_pair(gate.w, up.w, {70, 1000});
  const Tensor x = put(gate.x, {100, 1000});
  const std::vector<float> all = run_pair(x, pair);
  for (const int64_t together : {1, 16}) {
    std::vector<float> parts;
    for (int64_t row = 0; row < 100; row += together) {
      const std::vector<float> part =
          run_pair(x.view().slice(row, std::min<int64_t>(100, row + together)), pair);
      parts.insert(parts.end(), part.begin(), part.end());
    }
    expect_same_bits(parts, all);
  }
}

class CudaNormLinear : public CudaSwiglu {};

// x / sqrt(mean(x^2) + eps) * weight.
ref::Values normed(const std::vector<float>& x, const std::vector<float>& weight, float eps) {
  const size_t depth = weight.size();
  ref::Values y;
  for (size_t row = 0; row < x.size() / depth; ++row) {
    double sum = 0;
    for (size_t k = 0; k < depth; ++k) sum += static_cast<double>(x[row * depth + k]) * x[row * depth + k];
    for (size_t k = 0; k < depth; ++k)
      y.push_back(x[row * depth + k] / std::sqrt(sum / static_cast<double>(depth) + eps) * weight[k]);
  }
  return y;
}

TEST_P(CudaNormLinear, MatchesTheReference) {
  for (const Size size :
       {Size{1, 12, 40}, {5, 33, 1000}, {16, 40, 2056}, {3, 20, 37}, {30, 40, 64}, {40, 40, 1024}}) {
    SCOPED_TRACE(testing::Message() << size.rows << " x " << size.outputs << " x " << size.depth);
    Operands o = random_operands(size);
    const std::vector<float> weight = random_values(size.depth, 5);
    const Tensor weight_there = put(weight, {size.depth});
    const PackedMatrix matrix = pack(o, size);
    const Tensor y = put(std::vector<float>(static_cast<size_t>(size.rows * size.outputs), NAN),
                         {size.rows, size.outputs});
    norm_linear(ctx(), put(o.x, {size.rows, size.depth}), {weight_there, 1e-5f}, matrix, y);

    const ref::Values x = normed(o.x, weight, 1e-5f), w = narrow(o.w);
    const ref::Values magnitude =
        ref::linear(magnitudes(x), magnitudes(w), magnitudes(wide(o.bias)), size.depth);
    ref::Values allowed = product_bound(magnitude, size.depth, dtype());
    // The norm's own sums and roundings, and the rounding of what it gives to the matrix's dtype (of an f16
    // near zero by an absolute step).
    const double rounding = dtype() == DType::bf16 ? 0x1p-8 : dtype() == DType::f16 ? 0x1p-11 : 0.0;
    for (size_t i = 0; i < allowed.size(); ++i)
      allowed[i] += magnitude[i] * (rounding + static_cast<double>(size.depth / 128 + 20) * kUnit) + 1e-6;
    expect_close(get(y), ref::linear(x, w, wide(o.bias), size.depth), allowed);
  }
}

TEST_P(CudaNormLinear, IsTheNormAndThenTheProduct) {
  for (const Size size : {Size{1, 12, 40},
                          {3, 20, 37},
                          {16, 1000, 1024},
                          {2, 16, 2056},
                          {17, 20, 37},
                          {100, 24, 1000},
                          {40, 24, 1024}}) {
    SCOPED_TRACE(testing::Message() << size.rows << " x " << size.outputs << " x " << size.depth);
    Operands o = random_operands(size);
    std::vector<float> up = random_values(size.outputs * size.depth, 4, 0.3f);
    const Tensor weight = put(random_values(size.depth, 5), {size.depth});
    const RmsNorm norm{weight, 1e-5f};
    const PackedMatrix matrix = pack(o, size), pair = pack_pair(o.w, up, {size.outputs, size.depth});
    const Tensor x = put(o.x, {size.rows, size.depth}), between = put(o.x, {size.rows, size.depth});
    rms_norm(ctx(), x, weight, 1e-5f, between);
    const Tensor y = put(std::vector<float>(static_cast<size_t>(size.rows * size.outputs), NAN),
                         {size.rows, size.outputs});
    norm_linear(ctx(), x, norm, matrix, y);
    expect_same_bits(get(y), run(between, matrix));
    norm_swiglu(ctx(), x, norm, pair, y);
    expect_same_bits(get(y), run_pair(between, pair));
  }
}

// Kernels start before the ones that they depend on are done: with or without a pause between them, the
// results are the same.
TEST_P(CudaNormLinear, ProductsOneAfterTheOtherWaitForEachOther) {
  const int64_t depth = 512;
  std::vector<float> gate = random_values(depth * depth, 1, 0.05f),
                     up = random_values(depth * depth, 2, 0.05f);
  std::vector<float> down = random_values(depth * depth, 3, 0.05f);
  const PackedMatrix pair = pack_pair(gate, up, {depth, depth});
  const PackedMatrix back = pack_matrix(ctx(), view_of(down, {depth, depth}), {}, dtype());
  const Tensor weight = put(std::vector<float>(static_cast<size_t>(depth), 1.0f), {depth});
  for (const int64_t rows : {1, 16, 40}) {
    const std::vector<float> start = random_values(rows * depth, 4);
    std::vector<float> results[2];
    for (const bool pauses : {false, true}) {
      const Tensor x = put(start, {rows, depth});
      const Tensor hidden = put(start, {rows, depth}, dtype());
      for (int layer = 0; layer < 50; ++layer) {
        norm_swiglu(ctx(), x, {weight, 1e-5f}, pair, hidden);
        if (pauses) synchronize(ctx());
        linear(ctx(), hidden, back, x, {.accumulate = true});
        if (pauses) synchronize(ctx());
      }
      results[pauses] = get(x);
    }
    expect_same_bits(results[0], results[1]);
  }
}

std::string name_of_dtype(const testing::TestParamInfo<DType>& dtype) {
  return std::string(name_of(dtype.param));
}
const auto kDTypes = testing::Values(DType::f32, DType::bf16, DType::f16);

INSTANTIATE_TEST_SUITE_P(Gpu, CudaLinear, kDTypes, name_of_dtype);
INSTANTIATE_TEST_SUITE_P(Gpu, CudaSwiglu, kDTypes, name_of_dtype);
INSTANTIATE_TEST_SUITE_P(Gpu, CudaNormLinear, kDTypes, name_of_dtype);

}  // namespace
}  // namespace shoal::ops::cuda
