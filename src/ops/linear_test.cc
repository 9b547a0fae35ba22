#include "ops/linear.h"

#include "ops/matrix_testing.h"
#include "ops/norm.h"

namespace shoal::ops {
namespace {

struct Size {
  int64_t rows, outputs, depth;
};

constexpr Size kAwkward[] = {{1, 1, 1},   {3, 17, 33},  {5, 320, 1030}, {65, 96, 64},
                             {2, 33, 31}, {7, 16, 128}, {13, 48, 2},    {34, 100, 96}};

class Linear : public MatrixTest {
 protected:
  struct Operands {
    std::vector<float> x, w, bias;
  };

  static Operands random_operands(Size size) {
    const unsigned seed = static_cast<unsigned>(size.rows * 7 + size.outputs * 3 + size.depth);
    return {random_values(size.rows * size.depth, seed), random_values(size.outputs * size.depth, seed + 1),
            random_values(size.outputs, seed + 2)};
  }

  std::vector<float> run(Operands& o, Size size, const Epilogue& epilogue = {}, std::vector<float> y = {}) {
    const PackedMatrix weight = pack(o.w, {size.outputs, size.depth}, o.bias, GetParam().dtype);
    y.resize(static_cast<size_t>(size.rows * size.outputs));
    linear(ctx_, view_of(o.x, {size.rows, size.depth}), weight, view_of(y, {size.rows, size.outputs}),
           epilogue);
    return y;
  }

  static ref::Values expected(const Operands& o, int64_t depth) {
    const DType dtype = GetParam().dtype;
    return ref::linear(rounded(o.x, dtype), rounded(o.w, dtype), wide(o.bias), depth);
  }
  static ref::Values bound(const Operands& o, int64_t depth) {
    const DType dtype = GetParam().dtype;
    return sum_bound(ref::linear(magnitudes(rounded(o.x, dtype)), magnitudes(rounded(o.w, dtype)),
                                 magnitudes(wide(o.bias)), depth),
                     depth);
  }
};

TEST_P(Linear, MatchesTheReferenceAtAwkwardSizes) {
  for (const Size size : kAwkward) {
    SCOPED_TRACE(testing::Message() << size.rows << " x " << size.outputs << " x " << size.depth);
    Operands o = random_operands(size);
    if (size.outputs == 17) o.bias.clear();
    expect_close(run(o, size), expected(o, size.depth), bound(o, size.depth));
  }
}

TEST_P(Linear, ReadsAndWritesStridedRows) {
  const Size size{5, 40, 37};
  Operands o = random_operands(size);
  const PackedMatrix weight = pack(o.w, {size.outputs, size.depth}, o.bias, GetParam().dtype);
  std::vector<float> wide_x = random_values(5 * 50, 9), wide_y(5 * 60, 7.0f);
  for (int64_t row = 0; row < 5; ++row)
    std::copy_n(&o.x[static_cast<size_t>(row * 37)], 37, &wide_x[static_cast<size_t>(row * 50 + 6)]);
  linear(ctx_, view_of(wide_x, {5, 50}).columns(6, 43), weight, view_of(wide_y, {5, 60}).columns(10, 50));
  std::vector<float> inside, outside;
  for (size_t i = 0; i < wide_y.size(); ++i)
    (i % 60 >= 10 && i % 60 < 50 ? inside : outside).push_back(wide_y[i]);
  expect_same_bits(inside, run(o, size));
  EXPECT_THAT(outside, testing::Each(7.0f));
}

TEST_P(Linear, NoRowsNeedNoWork) {
  std::vector<float> w = random_values(6, 1), none, bias;
  const PackedMatrix weight = pack(w, {2, 3}, bias, GetParam().dtype);
  std::vector<float> x(3, NAN), y(2, 5.0f);
  linear(ctx_, view_of(x, {1, 3}).slice(0, 0), weight, view_of(y, {1, 2}).slice(0, 0));
  EXPECT_THAT(y, testing::Each(5.0f));
}

TEST_P(Linear, Epilogues) {
  const Size size{4, 35, 70};
  Operands o = random_operands(size);
  for (float& w : o.w) w *= 0.2f;
  std::vector<float> scale = random_values(size.outputs, 8), y0 = random_values(size.rows * size.outputs, 9);
  const ref::Values product = expected(o, size.depth), error = bound(o, size.depth);
  for (const Activation activation :
       {Activation::none, Activation::gelu, Activation::gelu_tanh, Activation::tanh}) {
    for (const bool accumulate : {false, true}) {
      for (const bool scaled : {false, true}) {
        const Epilogue epilogue{activation, accumulate,
                                scaled ? view_of(scale, {size.outputs}) : TensorView()};
        ref::Values want, allowed;
        for (size_t i = 0; i < product.size(); ++i) {
          const double v = product[i], s = scaled ? scale[i % scale.size()] : 1.0;
          double a = v, slope = 1.0;  // of the activation, at most
          if (activation == Activation::gelu) a = ref::gelu(v), slope = 1.13;
          if (activation == Activation::gelu_tanh) a = ref::gelu_tanh(v), slope = 1.13;
          if (activation == Activation::tanh) a = std::tanh(v);
          const double start = accumulate ? y0[i] : 0.0;
          want.push_back(start + s * a);
          // Four units for the function itself (2 ulp), two for the scaling and the sum.
          const double own = activation == Activation::none ? 0.0 : 4 * kUnit * (std::abs(v) + 1.0);
          allowed.push_back(std::abs(s) * (slope * error[i] + own) +
                            2 * kUnit * (std::abs(start) + std::abs(s * a)) + 1e-30);
        }
        SCOPED_TRACE(testing::Message()
                     << "activation " << static_cast<int>(activation) << ' ' << accumulate << ' ' << scaled);
        expect_close(run(o, size, epilogue, accumulate ? y0 : std::vector<float>{}), want, allowed);
      }
    }
  }
}

TEST_P(Linear, SwigluMatchesTheReference) {
  for (const Size size : {Size{1, 1, 1}, {3, 17, 33}, {19, 80, 64}}) {
    Operands gate = random_operands(size), up = random_operands({size.rows, size.outputs, size.depth + 1});
    up.w.resize(gate.w.size());
    for (float& w : gate.w) w *= 0.3f;
    gate.bias.clear(), up.bias.clear();
    up.x = gate.x;
    const Shape shape{size.outputs, size.depth};
    const PackedMatrix packed =
        pack_gate_up(ctx_, view_of(gate.w, shape), view_of(up.w, shape), GetParam().dtype);
    std::vector<float> y(static_cast<size_t>(size.rows * size.outputs));
    linear_swiglu(ctx_, view_of(gate.x, {size.rows, size.depth}), packed,
                  view_of(y, {size.rows, size.outputs}));
    const ref::Values g = expected(gate, size.depth), u = expected(up, size.depth);
    const ref::Values g_error = bound(gate, size.depth), u_error = bound(up, size.depth);
    ref::Values want, allowed;
    for (size_t i = 0; i < g.size(); ++i) {
      want.push_back(ref::silu(g[i]) * u[i]);
      // |silu'| < 1.1; exp, sum, quotient and product add at most 6 units of |g u|.
      allowed.push_back(1.1 * g_error[i] * (std::abs(u[i]) + u_error[i]) + std::abs(g[i]) * u_error[i] +
                        6 * kUnit * std::abs(g[i] * u[i]) + 1e-30);
    }
    expect_close(y, want, allowed);
  }
}

TEST_P(Linear, NormedProductsEqualTheNormFollowedByTheProduct) {
  const Size size{7, 40, 70};
  Operands o = random_operands(size), up = random_operands({size.rows, size.outputs, size.depth});
  std::vector<float> norm_weight = random_values(size.depth, 5);
  const RmsNorm norm{view_of(norm_weight, {size.depth}), 1e-5f};
  // Strided rows in, strided rows out.
  std::vector<float> wide_x = random_values(size.rows * 80, 6), normed(o.x.size());
  const TensorView x = view_of(wide_x, {size.rows, 80}).columns(3, 3 + size.depth);
  const TensorView middle = view_of(normed, {size.rows, size.depth});
  rms_norm(ctx_, x, norm.weight, norm.eps, middle);
  const PackedMatrix weight = pack(o.w, {size.outputs, size.depth}, o.bias, GetParam().dtype);
  const Shape shape{size.outputs, size.depth};
  const PackedMatrix gate_up =
      pack_gate_up(ctx_, view_of(o.w, shape), view_of(up.w, shape), GetParam().dtype);
  for (const bool swiglu : {false, true}) {
    std::vector<float> got(static_cast<size_t>(size.rows * 50), 7.0f), want = got;
    const TensorView y = view_of(got, {size.rows, 50}).columns(5, 45),
                     expected = view_of(want, {size.rows, 50}).columns(5, 45);
    if (swiglu) {
      norm_swiglu(ctx_, x, norm, gate_up, y);
      linear_swiglu(ctx_, middle, gate_up, expected);
    } else {
      norm_linear(ctx_, x, norm, weight, y);
      linear(ctx_, middle, weight, expected);
    }
    expect_same_bits(got, want);
  }
  std::vector<float> narrow(3), y(static_cast<size_t>(size.rows * size.outputs));
  const RmsNorm wrong{view_of(narrow, {3}), 1e-5f};
  EXPECT_THROW(norm_linear(ctx_, x, wrong, weight, view_of(y, {size.rows, size.outputs})), Error);
  EXPECT_THROW(norm_swiglu(ctx_, x, wrong, gate_up, view_of(y, {size.rows, size.outputs})), Error);
}

TEST_P(Linear, ProductsOnTheCpuReadOnlyFloats) {
  std::vector<float> w = random_values(6, 1), bias, y(2);
  const PackedMatrix weight = pack(w, {2, 3}, bias, GetParam().dtype);
  EXPECT_EQ(product_input(ctx_, weight), DType::f32);
  const Tensor narrow = Tensor::zeros(DType::bf16, {1, 3}), narrow_y(DType::bf16, {1, 2});
  EXPECT_THROW(linear(ctx_, narrow, weight, view_of(y, {1, 2})), Error);
  std::vector<float> x(3);
  EXPECT_THROW(linear(ctx_, view_of(x, {1, 3}), weight, narrow_y), Error);
  EXPECT_THROW(linear_swiglu(ctx_, view_of(x, {1, 3}), weight, narrow_y), Error);
}

TEST_P(Linear, ARowIsTheSameAloneAndInAnyBatch) {
  for (const Size size : {Size{67, 70, 130}, {67, 16, 33}}) {
    Operands o = random_operands(size);
    const std::vector<float> all = run(o, size);
    for (const int64_t count : {1, 2, 3, 5, 6, 7, 11, 12, 13, 16, 31, 33, 66}) {
      Operands part = o;
      const int64_t first = size.rows - count;
      part.x.erase(part.x.begin(), part.x.begin() + first * size.depth);
      expect_same_bits(run(part, {count, size.outputs, size.depth}),
                       {all.begin() + first * size.outputs, all.end()});
    }
  }
}

TEST_P(Linear, AnOutputIsTheSameAloneAndAmongOthers) {
  const Size size{9, 130, 200};
  Operands o = random_operands(size);
  const std::vector<float> all = run(o, size);
  Operands part = o;
  part.w.erase(part.w.begin(), part.w.begin() + 77 * size.depth);
  part.bias.erase(part.bias.begin(), part.bias.begin() + 77);
  std::vector<float> want;
  for (int64_t row = 0; row < size.rows; ++row)
    want.insert(want.end(), all.begin() + row * 130 + 77, all.begin() + (row + 1) * 130);
  expect_same_bits(run(part, {size.rows, size.outputs - 77, size.depth}), want);
}

TEST_P(Linear, TeamsOfAnySizeGiveTheSameBits) {
  const Size size{40, 600, 300};  // cut into many tasks
  Operands o = random_operands(size);
  const std::vector<float> two = run(o, size);
  for (const int threads : {1, 5}) {
    ThreadTeam team(threads);
    ctx_.team = &team;
    expect_same_bits(run(o, size), two);
  }
  ctx_.team = &team_;
}

// f32 on every instruction set; bf16 on all but avx512_bf16, whose instruction sums otherwise.
TEST_P(Linear, EveryInstructionSetGivesTheBitsOfThePortableKernel) {
  if (GetParam().dtype == DType::bf16 && GetParam().isa == CpuIsa::avx512_bf16)
    GTEST_SKIP() << "VDPBF16PS has its own order";
  for (const Size size : kAwkward) {
    Operands o = random_operands(size);
    for (const Activation activation : {Activation::gelu, Activation::gelu_tanh}) {
      set_cpu_isa(GetParam().isa);
      const std::vector<float> got = run(o, size, {.activation = activation});
      set_cpu_isa(CpuIsa::portable);
      expect_same_bits(got, run(o, size, {.activation = activation}));
    }
  }
}

TEST_P(Linear, DenormalOperandsOfBf16ProductsAreZero) {
  if (GetParam().dtype != DType::bf16) GTEST_SKIP() << "f32 keeps them";
  Operands o{{1e-39f, 1.0f}, {1e30f, 1e-39f}, {}};
  EXPECT_EQ(run(o, {1, 1, 2}), std::vector<float>{0.0f});
}

TEST_P(Linear, ANaNStaysInItsRow) {
  const Size size{20, 30, 33};
  Operands o = random_operands(size);
  const std::vector<float> clean = run(o, size);
  std::fill_n(o.x.begin() + 7 * size.depth, size.depth, NAN);
  std::vector<float> got = run(o, size);
  for (int64_t n = 0; n < 30; ++n) {
    EXPECT_TRUE(std::isnan(got[static_cast<size_t>(7 * 30 + n)]));
    got[static_cast<size_t>(7 * 30 + n)] = clean[static_cast<size_t>(7 * 30 + n)];
  }
  expect_same_bits(got, clean);
}

TEST_P(Linear, TheSteadyStateAllocatesNothing) {
  const Size size{9, 40, 50};
  Operands o = random_operands(size);
  run(o, size), run(o, size);
  const int64_t growths = workspace_.growths();
  run(o, size);
  EXPECT_EQ(workspace_.growths(), growths);
}

TEST_P(Linear, MismatchedShapesAreOurFault) {
  std::vector<float> w = random_values(6, 1), bias, x(8), y(8);
  const PackedMatrix weight = pack(w, {2, 3}, bias, GetParam().dtype);
  EXPECT_THROW(linear(ctx_, view_of(x, {2, 4}), weight, view_of(y, {4, 2}).slice(0, 2)), Error);
  EXPECT_THROW(linear(ctx_, view_of(x, {2, 4}).columns(0, 3), weight, view_of(y, {2, 4})), Error);
  EXPECT_THROW(linear(ctx_, view_of(x, {2, 4}).columns(0, 3), weight, view_of(y, {4, 2})), Error);
  const Epilogue epilogue{.activation = Activation::none, .accumulate = false, .scale = view_of(x, {8})};
  EXPECT_THROW(
      linear(ctx_, view_of(x, {2, 4}).columns(0, 3), weight, view_of(y, {4, 2}).slice(0, 2), epilogue),
      Error);
  EXPECT_THROW(linear_swiglu(ctx_, view_of(x, {2, 4}).columns(0, 3), weight, view_of(y, {4, 2}).slice(0, 2)),
               Error);
}

TEST(LinearBackends, WithoutCudaTheCudaBackendIsUnavailable) {
  ThreadTeam team(1);
  Workspace workspace;
  Context ctx{.device = {DeviceKind::cuda, 0}, .team = &team, .workspace = &workspace};
  std::vector<float> w(4);
  try {
    pack_matrix(ctx, view_of(w, {2, 2}), {}, DType::f32);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unavailable);
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, Linear, testing::ValuesIn(matrix_cases()), name_of_case);

}  // namespace
}  // namespace shoal::ops
