#include <array>
#include <set>

#include "ops/cuda_devices.h"
#include "ops/linear_testing.h"

namespace shoal::ops {
namespace {

// Few rows and many; rows of tiles in ones, twos, fours and sixes to a block of a GPU; sums of one tile and
// of segments of many; inputs that end within a tile, within eight and within a vector.
constexpr LinearSize kAwkward[] = {
    {1, 1, 1},    {3, 17, 33},    {5, 320, 1030}, {65, 96, 64},   {2, 33, 31},    {7, 16, 128},
    {13, 48, 2},  {34, 100, 96},  {3, 12, 40},    {5, 40, 12},    {7, 17, 33},    {16, 96, 96},
    {17, 12, 40}, {4, 1000, 257}, {9, 2200, 40},  {2, 4300, 64},  {16, 6500, 32}, {40, 96, 1000},
    {33, 70, 31}, {16, 24, 3104}, {8, 9, 4128},   {65, 200, 264}, {40, 96, 1024}, {64, 70, 512}};

class Linear : public LinearTest {};

TEST_P(Linear, MatchesTheReferenceAtAwkwardSizes) {
  for (const LinearSize size : kAwkward) {
    SCOPED_TRACE(testing::Message() << size);
    Operands o = random_operands(size);
    if (size.outputs == 17) o.bias.clear();
    expect_close(run(o, size), expected(o, size.depth), bound(o, size.depth));
  }
}

TEST_P(Linear, EveryNumberOfRows) {
  for (const auto [outputs, depth] : {std::array<int64_t, 2>{12, 40}, {1000, 96}, {40, 1000}}) {
    const LinearSize size{40, outputs, depth};
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

TEST_P(Linear, ARowIsTheSameAloneAndInAnyBatch) {
  for (const LinearSize size : {LinearSize{67, 70, 130},
                                {67, 16, 33},
                                {100, 1000, 1000},
                                {100, 24, 3072},
                                {100, 70, 36},
                                {100, 9, 12}}) {
    if (size.outputs == 1000 && !on_gpu()) continue;  // CPUs take outputs in far smaller pieces
    Operands o = random_operands(size);
    const PackedMatrix weight = pack(o, size);
    const Tensor x = put(o.x, {size.rows, size.depth});
    const Epilogue epilogue{.activation = size.rows == 100 ? Activation::gelu : Activation::none};
    const std::vector<float> all = run(x, weight, epilogue);
    // The last rows, and all of them a few at a time.
    for (const int64_t count : {1, 2, 3, 5, 6, 7, 11, 12, 13, 16, 31, 33, 66}) {
      SCOPED_TRACE(testing::Message() << "the last " << count << " of " << size);
      const int64_t first = size.rows - count;
      expect_same_bits(run(x.view().slice(first, size.rows), weight, epilogue),
                       {all.begin() + first * size.outputs, all.end()});
    }
    for (const int64_t together : {1, 3, 16, 50}) {
      SCOPED_TRACE(testing::Message() << size << ", " << together << " together");
      std::vector<float> parts;
      for (int64_t row = 0; row < size.rows; row += together) {
        const std::vector<float> part =
            run(x.view().slice(row, std::min(size.rows, row + together)), weight, epilogue);
        parts.insert(parts.end(), part.begin(), part.end());
      }
      expect_same_bits(parts, all);
    }
  }
}

TEST_P(Linear, AnOutputIsTheSameAloneAndAmongOthers) {
  const LinearSize size{9, 130, 200};
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

// A producer may write 16 bits at once on a GPU; rows may lie anywhere. The product sees the same numbers.
TEST_P(Linear, AnyInputThatRoundsToTheSameGivesTheSame) {
  for (const LinearSize size : {LinearSize{5, 40, 64}, {5, 40, 37}, {30, 40, 64}, {30, 40, 37}}) {
    SCOPED_TRACE(testing::Message() << size);
    Operands o = random_operands(size);
    const PackedMatrix weight = pack(o, size);
    const std::vector<float> want = run(put(o.x, {size.rows, size.depth}), weight);
    expect_same_bits(run(put(rounded_to(o.x, dtype()), {size.rows, size.depth}), weight), want);
    for (const DType input : std::set{DType::f32, product_input(ctx(), weight)}) {
      expect_same_bits(run(put(o.x, {size.rows, size.depth}, input), weight), want);
      for (const int64_t offset : {1, 3, 8}) {
        const int64_t stride = size.depth + 16 + offset;
        std::vector<float> wider(static_cast<size_t>(size.rows * stride), NAN);
        for (int64_t row = 0; row < size.rows; ++row)
          std::copy_n(&o.x[static_cast<size_t>(row * size.depth)], size.depth,
                      &wider[static_cast<size_t>(row * stride + offset)]);
        const Tensor x = put(wider, {size.rows, stride}, input);
        expect_same_bits(run(x.view().columns(offset, offset + size.depth), weight), want);
      }
    }
  }
}

TEST_P(Linear, WritesNothingBesidesItsRows) {
  for (const LinearSize size : {LinearSize{5, 37, 40}, {30, 37, 40}, {5, 40, 37}}) {
    Operands o = random_operands(size);
    const PackedMatrix weight = pack(o, size);
    const Tensor x = put(o.x, {size.rows, size.depth});
    const Tensor y =
        put(std::vector<float>(static_cast<size_t>((size.rows + 1) * 60), 7.0f), {size.rows + 1, 60});
    linear(ctx(), x, weight, y.view().slice(0, size.rows).columns(11, 11 + size.outputs));
    std::vector<float> inside, outside;
    const std::vector<float> all = get(y);
    for (size_t i = 0; i < all.size(); ++i) {
      const auto row = static_cast<int64_t>(i / 60), column = static_cast<int64_t>(i % 60);
      const bool in = row < size.rows && column >= 11 && column < 11 + size.outputs;
      (in ? inside : outside).push_back(all[i]);
    }
    expect_same_bits(inside, run(x, weight));
    EXPECT_THAT(outside, testing::Each(7.0f));
  }
}

TEST_P(Linear, NoRowsNeedNoWork) {
  Operands o{{}, random_values(6, 1), {}};
  const PackedMatrix weight = pack(o, {0, 2, 3});
  const Tensor x = garbage({1, 3}), y = put(std::vector<float>{5, 5}, {1, 2});
  linear(ctx(), x.view().slice(0, 0), weight, y.view().slice(0, 0));
  EXPECT_THAT(get(y), testing::Each(5.0f));
}

TEST_P(Linear, Epilogues) {
  // The function itself (2 ulp), on a GPU with the roundings around it.
  const double units = on_gpu() ? 8 : 4;
  for (const int64_t rows : {4, 20}) {
    const LinearSize size{rows, 35, 70};
    Operands o = random_operands(size);
    const PackedMatrix weight = pack(o, size);
    const Tensor x = put(o.x, {rows, 70});
    const std::vector<float> scale = random_values(35, 8), y0 = random_values(rows * 35, 9);
    const Tensor placed_scale = put(scale, {35});
    const ref::Values product = expected(o, size.depth), error = bound(o, size.depth);
    for (const Activation activation :
         {Activation::none, Activation::gelu, Activation::gelu_tanh, Activation::tanh})
      for (const bool accumulate : {false, true})
        for (const bool scaled : {false, true}) {
          const Epilogue epilogue{activation, accumulate, scaled ? placed_scale.view() : TensorView()};
          ref::Values want, allowed;
          for (size_t i = 0; i < product.size(); ++i) {
            const double v = product[i], s = scaled ? scale[i % 35] : 1.0, start = accumulate ? y0[i] : 0.0;
            double a = v, slope = 1.0;  // of the activation, at most
            if (activation == Activation::gelu) a = ref::gelu(v), slope = 1.13;
            if (activation == Activation::gelu_tanh) a = ref::gelu_tanh(v), slope = 1.13;
            if (activation == Activation::tanh) a = std::tanh(v);
            want.push_back(start + s * a);
            const double own = activation == Activation::none ? 0.0 : units * kUnit * (std::abs(v) + 1.0);
            // Two units for the scaling and the sum.
            allowed.push_back(std::abs(s) * (slope * error[i] + own) +
                              2 * kUnit * (std::abs(start) + std::abs(s * a)) + 1e-30);
          }
          SCOPED_TRACE(testing::Message() << rows << " rows, activation " << static_cast<int>(activation)
                                          << ' ' << accumulate << ' ' << scaled);
          expect_close(run(x, weight, epilogue, accumulate ? y0 : std::vector<float>{}), want, allowed);
        }
  }
}

TEST_P(Linear, ANaNStaysInItsRow) {
  const LinearSize size{20, 30, 33};
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
  const LinearSize size{9, 40, 50};
  Operands o = random_operands(size);
  run(o, size), run(o, size);
  const int64_t growths = ctx().workspace->growths();
  run(o, size);
  EXPECT_EQ(ctx().workspace->growths(), growths);
}

TEST_P(Linear, MismatchedShapesAreOurFault) {
  Operands o{{}, random_values(6, 1), {}};
  const PackedMatrix weight = pack(o, {0, 2, 3}), pair = pack_pair(o.w, o.w, {2, 3});
  const Tensor four_inputs = garbage({2, 4}), two_rows = garbage({2, 2}), four_rows = garbage({4, 2}),
               scale = garbage({8});
  const TensorView x = four_inputs.view().columns(0, 3);
  EXPECT_NO_THROW(linear(ctx(), x, weight, two_rows));
  EXPECT_THROW(linear(ctx(), four_inputs, weight, two_rows), Error);
  EXPECT_THROW(linear(ctx(), x, weight, four_inputs), Error);
  EXPECT_THROW(linear(ctx(), x, weight, four_rows), Error);
  EXPECT_THROW(linear(ctx(), x, weight, two_rows, {.scale = scale}), Error);
  EXPECT_NO_THROW(linear_swiglu(ctx(), x, pair, two_rows));
  EXPECT_THROW(linear_swiglu(ctx(), four_inputs, pair, two_rows), Error);
  EXPECT_THROW(linear_swiglu(ctx(), x, pair, four_rows), Error);
  EXPECT_THROW(linear_swiglu(ctx(), x, weight, two_rows), Error);
}

INSTANTIATE_TEST_SUITE_P(Machine, Linear, testing::ValuesIn(products_on(every_product_machine())),
                         name_of_product);

class LinearOnCpus : public LinearTest {};

TEST_P(LinearOnCpus, ProductsOnTheCpuReadOnlyFloats) {
  Operands o{{}, random_values(6, 1), {}};
  const PackedMatrix weight = pack(o, {0, 2, 3}), pair = pack_pair(o.w, o.w, {2, 3});
  EXPECT_EQ(product_input(ctx(), weight), DType::f32);
  const Tensor narrow = garbage({1, 3}, DType::bf16), narrow_y = garbage({1, 2}, DType::bf16),
               x = garbage({1, 3}), y = garbage({1, 2});
  EXPECT_THROW(linear(ctx(), narrow, weight, y), Error);
  EXPECT_THROW(linear(ctx(), x, weight, narrow_y), Error);
  EXPECT_THROW(linear_swiglu(ctx(), x, pair, narrow_y), Error);
}

TEST_P(LinearOnCpus, SwigluRefusesAMatrixThatIsNoPair) {
  Operands o{{}, random_values(6, 1), {}};
  EXPECT_THROW(run_pair(garbage({2, 3}), pack(o, {0, 2, 3})), Error);
}

TEST_P(LinearOnCpus, TeamsOfAnySizeGiveTheSameBits) {
  const LinearSize size{40, 600, 300};  // cut into many tasks
  Operands o = random_operands(size);
  const std::vector<float> two = run(o, size);
  for (const int threads : {1, 5}) {
    ThreadTeam team(threads);
    ctx().team = &team;
    expect_same_bits(run(o, size), two);
  }
}

// f32 on every instruction set; bf16 on all but avx512_bf16, whose instruction sums otherwise.
TEST_P(LinearOnCpus, EveryInstructionSetGivesTheBitsOfThePortableKernel) {
  if (dtype() == DType::bf16 && GetParam().machine.isa == CpuIsa::avx512_bf16)
    GTEST_SKIP() << "VDPBF16PS has its own order";
  for (const LinearSize size : kAwkward) {
    Operands o = random_operands(size);
    for (const Activation activation : {Activation::gelu, Activation::gelu_tanh}) {
      set_cpu_isa(*GetParam().machine.isa);
      const std::vector<float> got = run(o, size, {.activation = activation});
      set_cpu_isa(CpuIsa::portable);
      expect_same_bits(got, run(o, size, {.activation = activation}));
    }
  }
}

TEST_P(LinearOnCpus, DenormalOperandsOfBf16ProductsAreZero) {
  if (dtype() != DType::bf16) GTEST_SKIP() << "f32 keeps them";
  Operands o{{1e-39f, 1.0f}, {1e30f, 1e-39f}, {}};
  EXPECT_EQ(run(o, {1, 1, 2}), std::vector<float>{0.0f});
}

INSTANTIATE_TEST_SUITE_P(Cpu, LinearOnCpus, testing::ValuesIn(products_on(every_product_cpu())),
                         name_of_product);

TEST(LinearBackends, WithoutCudaTheCudaBackendIsUnavailable) {
  if (!cuda_devices().empty()) GTEST_SKIP() << "there is a GPU";
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

}  // namespace
}  // namespace shoal::ops
