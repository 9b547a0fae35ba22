// Pairs of products that make SwiGLU, and norms before products.
#include "ops/linear_testing.h"
#include "ops/norm.h"
#include "ops/rows_testing.h"

namespace shoal::ops {
namespace {

class Swiglu : public LinearTest {};

TEST_P(Swiglu, MatchesTheReference) {
  for (const LinearSize size : {LinearSize{1, 1, 1},
                                {3, 17, 33},
                                {19, 80, 64},
                                {16, 1000, 40},
                                {2, 3300, 40},
                                {50, 100, 257},
                                {50, 100, 512}}) {
    SCOPED_TRACE(testing::Message() << size);
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
      const double silu = ref::silu(g[i]);
      want.push_back(silu * u[i]);
      // |silu'| < 1.1. Exponential, sum, quotient and product: six units of |g u| at most, on a GPU eight of
      // the result.
      const double own = on_gpu() ? 8 * std::abs(want.back()) : 6 * std::abs(g[i] * u[i]);
      allowed.push_back(1.1 * g_error[i] * (std::abs(u[i]) + u_error[i]) + std::abs(silu) * u_error[i] +
                        own * kUnit + 1e-30);
    }
    expect_close(got, want, allowed);
    if (!on_gpu()) continue;  // CPUs write floats alone
    for (const DType narrow_dtype : {DType::bf16, DType::f16})
      expect_same_bits(run_pair(x, pair, narrow_dtype), rounded_to(got, narrow_dtype));
  }
}

// On a GPU the exponential of a gate is no divisor where it is too large: 2^126 takes its place.
TEST_P(Swiglu, GatesBeyondExponentialsAreNumbersNearTheirValue) {
  std::vector<float> gate = {-30000, -1000, -200, -89, -88, -87.5, -87, -86, -40,
                             -1,     0,     1,    40,  86,  87,    88,  89,  1000};
  gate = rounded_to(gate, dtype());
  std::vector<float> up(gate.size(), 2.0f);
  const PackedMatrix pair = pack_pair(gate, up, {std::ssize(gate), 1});
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

TEST_P(Swiglu, AloneIsAsInABatch) {
  const LinearSize size{100, 70, 1000};
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

INSTANTIATE_TEST_SUITE_P(Machine, Swiglu, testing::ValuesIn(products_on(every_product_machine())),
                         name_of_product);

class NormLinear : public LinearTest {
 protected:
  static constexpr float kEps = 1e-5f;

  // Norm and product at once and one after the other, of x and into rows of y.
  void expect_same_in_turn(TensorView x, TensorView norm_weight, Operands& o, LinearSize size) {
    SCOPED_TRACE(testing::Message() << size);
    std::vector<float> up = random_values(size.outputs * size.depth, 4, 0.3f);
    const PackedMatrix matrix = pack(o, size), pair = pack_pair(o.w, up, {size.outputs, size.depth});
    const RmsNorm norm{norm_weight, kEps};
    const Tensor between = garbage({size.rows, size.depth});
    rms_norm(ctx(), x, norm.weight, norm.eps, between);
    const std::vector<float> before(static_cast<size_t>(size.rows * (size.outputs + 10)), 7.0f);
    const auto rows_like_before = [&] { return put(before, {size.rows, size.outputs + 10}); };
    const auto part = [&](const Tensor& y) { return y.view().columns(5, 5 + size.outputs); };
    const Tensor at_once = rows_like_before(), in_turn = rows_like_before();
    norm_linear(ctx(), x, norm, matrix, part(at_once));
    linear(ctx(), between, matrix, part(in_turn));
    expect_same_bits(get(at_once), get(in_turn));
    norm_swiglu(ctx(), x, norm, pair, part(at_once));
    linear_swiglu(ctx(), between, pair, part(in_turn));
    expect_same_bits(get(at_once), get(in_turn));
    const Tensor dense = garbage({size.rows, size.outputs});
    norm_linear(ctx(), x, norm, matrix, dense);
    expect_same_bits(get(dense), run(between, matrix));
    norm_swiglu(ctx(), x, norm, pair, dense);
    expect_same_bits(get(dense), run_pair(between, pair));
  }
};

TEST_P(NormLinear, MatchesTheReference) {
  for (const LinearSize size :
       {LinearSize{1, 12, 40}, {5, 33, 1000}, {16, 40, 2056}, {3, 20, 37}, {30, 40, 64}, {40, 40, 1024}}) {
    SCOPED_TRACE(testing::Message() << size);
    Operands o = random_operands(size);
    const std::vector<float> weight = random_values(size.depth, 5);
    const Tensor placed_weight = put(weight, {size.depth}), x_there = put(o.x, {size.rows, size.depth});
    const PackedMatrix matrix = pack(o, size);
    const Tensor y = garbage({size.rows, size.outputs});
    norm_linear(ctx(), x_there, {placed_weight, kEps}, matrix, y);

    ref::Values x;
    for (int64_t row = 0; row < size.rows; ++row)
      for (const double value : ref::rms_norm(values_of_row(o.x, row, size.depth), wide(weight), kEps))
        x.push_back(value);
    const ref::Values w = narrow(o.w);
    const ref::Values magnitude =
        ref::linear(magnitudes(x), magnitudes(w), magnitudes(wide(o.bias)), size.depth);
    ref::Values allowed = bound_of(magnitude, size.depth);
    // The norm's own sums and roundings, and the rounding of what it gives to the matrix's dtype (of an f16
    // near zero by an absolute step).
    const double rounding = dtype() == DType::f32 ? 0.0 : 2 * unit_of(dtype());
    for (size_t i = 0; i < allowed.size(); ++i)
      allowed[i] += magnitude[i] * (rounding + static_cast<double>(size.depth / 128 + 20) * kUnit) + 1e-6;
    expect_close(get(y), ref::linear(x, w, wide(o.bias), size.depth), allowed);
  }
}

TEST_P(NormLinear, NormedProductsEqualTheNormFollowedByTheProduct) {
  for (const LinearSize size : {LinearSize{1, 12, 40},
                                {3, 20, 37},
                                {16, 1000, 1024},
                                {2, 16, 2056},
                                {17, 20, 37},
                                {100, 24, 1000},
                                {40, 24, 1024},
                                {7, 40, 70}}) {
    if (size.outputs == 1000 && !on_gpu()) continue;  // CPUs take outputs in far smaller pieces
    Operands o = random_operands(size);
    const Tensor weight = put(random_values(size.depth, 5), {size.depth});
    expect_same_in_turn(put(o.x, {size.rows, size.depth}), weight, o, size);
    const Tensor wider = put(random_values(size.rows * (size.depth + 10), 6), {size.rows, size.depth + 10});
    expect_same_in_turn(wider.view().columns(3, 3 + size.depth), weight, o, size);
  }
}

TEST_P(NormLinear, RefusesAWeightOfAnotherSize) {
  Operands o = random_operands({7, 40, 70});
  const PackedMatrix matrix = pack(o, {7, 40, 70}), pair = pack_pair(o.w, o.w, {40, 70});
  const Tensor x = garbage({7, 70}), y = garbage({7, 40}), weight = garbage({3});
  EXPECT_THROW(norm_linear(ctx(), x, {weight, kEps}, matrix, y), Error);
  EXPECT_THROW(norm_swiglu(ctx(), x, {weight, kEps}, pair, y), Error);
}

INSTANTIATE_TEST_SUITE_P(Machine, NormLinear, testing::ValuesIn(products_on(every_product_machine())),
                         name_of_product);

}  // namespace
}  // namespace shoal::ops
