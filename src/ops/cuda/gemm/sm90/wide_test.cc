#include <algorithm>

#include "ops/cuda/gemm/choose.h"
#include "ops/cuda/gemm/skinny/skinny_product.h"
#include "ops/cuda/gemm/sm90/wide_kernels_testing.h"
#include "ops/cuda/gemm/sm90/wide_product.h"
#include "ops/cuda/gemm/tile/tile_product.h"
#include "ops/linear.h"
#include "ops/product_testing.h"

namespace shoal::ops::cuda {
namespace {

const Machine kH200{132, 227 << 10};

std::vector<WideChoice> every_choice(const MatrixShape& matrix, const Machine& machine = kH200) {
  std::vector<WideChoice> choices;
  for (int shape = 0; shape < static_cast<int>(kWideShapes.size()); ++shape)
    for (const int cluster : {1, 2, 4, 8})
      if (const WideChoice choice{shape, cluster}; can_do(choice, matrix, machine)) choices.push_back(choice);
  return choices;
}

const MatrixShape kShapes[] = {
    {1, 1, 1},       {4096, 1, 1024}, {3072, 1, 1024, true}, {96, 7, 96},         {768, 7, 768},
    {6144, 2, 1536}, {192, 2, 192},   {1024, 1, 3072},       {40, 9, 136, false}, {1, 1, 32},
    {100, 1, 264},   {6144, 1, 2560}, {9728, 1, 2560, true}};

TEST(WideChoice, EveryProductHasAKernelThatFits) {
  for (const MatrixShape& matrix : kShapes) {
    for (const int64_t rows : {1, 17, 64, 256, 1000, 100000}) {
      const WideChoice choice = choose_wide(matrix, rows, kH200);
      EXPECT_TRUE(can_do(choice, matrix, kH200));
      EXPECT_GT(expected_us(choice, matrix, rows, kH200), 0);
    }
  }
}

TEST(WideChoice, LargeMatricesHaveShapesOfTheirOwn) {
  const auto outputs = [](const MatrixShape& matrix) {
    return kWideShapes[static_cast<size_t>(choose_wide(matrix, 64, {132, 227 << 10, true}).shape)].outputs;
  };
  EXPECT_EQ(outputs({6144, 1, 2560}), 48);         // S2-Pro's qkv: 128 blocks
  EXPECT_EQ(outputs({9728, 1, 2560, true}), 160);  // w1 and w3: 122
}

// S1-mini's w1 and w3: 129 blocks of 128 x 144, one each, where 128 x 192 would leave 36 multiprocessors
// idle.
TEST(WideChoice, RowsOfThreeBlocksTakeTheShapeThatFillsTheGpu) {
  const auto outputs = [](int64_t rows) {
    const WideChoice choice = choose_wide({3072, 1, 1024, true}, rows, {132, 227 << 10, true});
    return kWideShapes[static_cast<size_t>(choice.shape)].outputs;
  };
  EXPECT_EQ(outputs(300), 144);
  EXPECT_EQ(outputs(512), 192);
}

TEST(WideChoice, PlansFitIntoSharedMemoryAndHoldEverySegment) {
  for (const MatrixShape& matrix : kShapes) {
    for (const WideChoice& choice : every_choice(matrix)) {
      const WideShape& shape = kWideShapes[static_cast<size_t>(choice.shape)];
      const WidePlan plan = wide_plan(choice, matrix, kH200);
      EXPECT_LE(plan.bytes, (kH200.shared_bytes + 1024) / shape.blocks - 1024);
      EXPECT_GE(plan.stages, 2);
      EXPECT_TRUE(1 <= plan.copy_tiles && plan.copy_tiles <= 4);
      EXPECT_EQ(plan.stage_tiles % plan.copy_tiles, 0);
      EXPECT_GE(plan.local_segments * choice.cluster, segments_of(matrix));
      EXPECT_EQ(plan.sums_offset % 512, 0);
      EXPECT_EQ(plan.barriers_offset % 8, 0);
      EXPECT_LE(plan.barriers_offset + 16 * plan.stages, plan.bytes);
      const int64_t sums = shape.split
                               ? plan.local_segments * shape.rows() * (shape.outputs + kWideSumPadding)
                               : shape.rows() * (kWideChunk + kWideSumPadding);
      EXPECT_LE(plan.sums_offset + 4 * sums, plan.barriers_offset);
    }
  }
}

TEST(WideChoice, OnlySplitShapesOfSeveralSegmentsUseClusters) {
  for (const MatrixShape& matrix : kShapes)
    for (const WideChoice& choice : every_choice(matrix))
      EXPECT_EQ(choice.cluster > 1, kWideShapes[static_cast<size_t>(choice.shape)].split);
  for (const WideChoice& choice : every_choice({64, 1, 32})) EXPECT_EQ(choice.cluster, 1);
}

TEST(WideChoice, PlansFitOnASmallGpu) {
  const Machine small{20, 48 << 10};
  for (const WideChoice& choice : every_choice({1024, 1, 1024}, small))
    EXPECT_LE(wide_plan(choice, {1024, 1, 1024}, small).bytes, small.shared_bytes);
}

struct Size {
  int64_t rows;
  MatrixShape matrix;
};

std::ostream& operator<<(std::ostream& out, const Size& size) {
  return out << size.rows << " rows of " << size.matrix.outputs << (size.matrix.paired ? " pairs" : "")
             << " x " << size.matrix.taps << " x " << size.matrix.depth;
}

// Blocks that are full and blocks that are not; fewer rows than a group; segments of one tile, of two, three
// and more, with a shorter last one; inputs that end within a tile and within a chunk; more results than
// multiprocessors; matrices that are large enough for the kernels of those (is_large).
const Size kSizes[] = {{17, {24, 1, 40}},
                       {70, {100, 1, 264}},
                       {130, {144, 1, 1064}},
                       {200, {20, 1, 32}},
                       {33, {136, 1, 96}},
                       {64, {24, 1, 3104}},
                       {50, {40, 1, 136, true}},
                       {140, {100, 1, 600, true}},
                       {256, {1024, 1, 1024}},
                       {2100, {1600, 1, 520}},
                       {1, {9, 1, 12}},
                       {129, {193, 1, 768}},
                       {300, {200, 1, 1536, true}},
                       {130, {72, 1, 800}},
                       {70, {72, 1, 832}},
                       {33, {72, 1, 864}},
                       {200, {2568, 1, 2560}},
                       {20, {1304, 1, 2560, true}}};

// Convolutions: taps that are two, seven and more than a block's groups, of one tile, two, three and more.
const Size kConvSizes[] = {{70, {96, 7, 96}},   {200, {40, 2, 192}}, {33, {64, 9, 24}}, {500, {192, 7, 64}},
                           {130, {20, 3, 136}}, {9000, {96, 7, 40}}, {70, {96, 3, 128}}};

// How a product is run.
struct Result {
  DType dtype = DType::f32;
  int64_t margin = 0;              // how much wider rows of y are
  const float* snake = nullptr;    // alpha
  std::vector<float> before = {};  // what y holds; else NaN
};

class WideProduct : public WideKernelsTest {
 protected:
  struct Operands {
    std::vector<float> x, w, up, bias, scale, alpha;
    std::vector<int32_t> first_rows;
    PackedMatrix weight;
    Tensor x_there, scale_there, alpha_there, first_there;
    Product product;
  };

  // Tap rows of a convolution: sequences of `of_sequence` rows lie apart, as behind histories of their own.
  static constexpr int64_t kDilation = 3;
  Operands operands(const Size& size, int64_t of_sequence = 1 << 30) {
    const MatrixShape& m = size.matrix;
    const int64_t stride = (m.depth + 7) / 8 * 8, look_back = (m.taps - 1) * kDilation;
    Operands o;
    for (int64_t t = 0; t < size.rows; ++t)
      o.first_rows.push_back(static_cast<int32_t>(t + t / of_sequence * look_back));
    const int64_t rows = o.first_rows.back() + 1 + look_back;
    o.x = random_values(rows * stride, 1);
    for (int64_t i = 0; i < rows * stride; ++i)
      if (i % stride >= m.depth) o.x[static_cast<size_t>(i)] = 0;
    const int64_t inputs = m.taps * m.depth;
    o.w = random_values(m.outputs * inputs, 2, 0.3f), o.up = random_values(m.outputs * inputs, 3, 0.3f);
    o.bias = random_values(m.outputs, 4), o.scale = random_values(m.outputs, 5);
    for (const float v : random_values(m.outputs, 6)) o.alpha.push_back(0.1f + std::abs(v));
    const Shape shape = m.taps > 1 ? Shape{m.outputs, m.taps, m.depth} : Shape{m.outputs, m.depth};
    o.weight = m.paired ? pack_gate_up(ctx(), view_of(o.w, shape), view_of(o.up, shape), dtype())
                        : pack_matrix(ctx(), view_of(o.w, shape), view_of(o.bias, {m.outputs}), dtype());
    o.x_there = put(o.x, {rows, stride}, dtype());
    o.scale_there = put(o.scale, {m.outputs}), o.alpha_there = put(o.alpha, {m.outputs});
    o.product = {.shape = m,
                 .format = dtype(),
                 .weight = o.weight.storage.view().data(),
                 .x = o.x_there.view().data(),
                 .x_stride = stride,
                 .rows = size.rows,
                 .taps = {},
                 .epilogue = {.bias = m.paired ? nullptr : o.weight.bias.as<float>()}};
    if (m.taps == 1) return o;
    o.first_there = put(o.first_rows, {size.rows});
    o.product.taps = {o.first_there.as<int32_t>(), kDilation};
    return o;
  }

  // Without the bias: of this part of a pair, and what it may be off by.
  struct Expected {
    ref::Values values, bound;
  };
  Expected expected(const Operands& o, const std::vector<float>& part, bool with_bias) {
    const MatrixShape& m = o.product.shape;
    std::vector<float> gathered;
    for (const int32_t first : o.first_rows)
      for (int64_t tap = 0; tap < m.taps; ++tap) {
        const auto begin = o.x.begin() + (first + tap * kDilation) * o.product.x_stride;
        gathered.insert(gathered.end(), begin, begin + m.depth);
      }
    const ref::Values x = wide(rounded_to(gathered, dtype())), w = wide(rounded_to(part, dtype())),
                      bias = with_bias ? wide(o.bias) : ref::Values();
    const int64_t inputs = m.taps * m.depth;
    return {ref::linear(x, w, bias, inputs),
            product_bound(ref::linear(magnitudes(x), magnitudes(w), magnitudes(bias), inputs), m.depth,
                          dtype(), m.taps)};
  }

  // By the tile kernel, or this choice.
  std::vector<float> run(Product product, const WideChoice* choice, const Result& result = {}) {
    const int64_t outputs = product.shape.outputs, width = outputs + result.margin;
    std::vector<float> before = result.before;
    before.resize(static_cast<size_t>(product.rows * width), NAN);
    const Tensor y = put(before, {product.rows, width}, result.dtype);
    product.epilogue.y = y.view().data();
    product.epilogue.y_stride = width;
    product.epilogue.y_dtype = result.dtype;
    if (choice)
      wide_product_by(ctx(), product, *choice, result.snake);
    else
      tile_product_by(ctx(), product, choose_tile(product.shape, product.rows, machine_of(ctx())),
                      result.snake);
    if (result.margin > 0) {
      for (const float v : get(y.view().columns(outputs, width))) EXPECT_TRUE(std::isnan(v));
    }
    return get(y.view().columns(0, outputs));
  }

  static std::string name_of_choice(const Size& size, const WideChoice& choice) {
    const WideShape& shape = kWideShapes[static_cast<size_t>(choice.shape)];
    return (testing::Message() << size << " by " << shape.rows() << " x " << shape.outputs << ", cluster of "
                               << choice.cluster)
        .GetString();
  }

  // Every choice against the tile kernel, bit for bit, and that, where it takes no time, against the
  // definition.
  void compare(const Size& size, const Operands& o) {
    const std::vector<float> want = run(o.product, nullptr);
    const MatrixShape& m = size.matrix;
    if (!m.paired && size.rows * m.outputs * m.taps * m.depth < 50'000'000) {
      const Expected reference = expected(o, o.w, true);
      expect_close(want, reference.values, reference.bound);
    }
    for (const WideChoice& choice : every_choice(size.matrix)) {
      SCOPED_TRACE(name_of_choice(size, choice));
      expect_same_bits(run(o.product, &choice), want);
      if (HasFailure()) return;
      expect_same_bits(run(o.product, &choice, {.margin = 3}), want);
      expect_same_bits(run(o.product, &choice, {.dtype = dtype()}), rounded_to(want, dtype()));
      expect_same_bits(run(o.product, &choice, {.dtype = dtype(), .margin = 1}), rounded_to(want, dtype()));
    }
  }
};

TEST_P(WideProduct, EveryKernelGivesTheBitsOfTheTileKernel) {
  for (const Size& size : kSizes) {
    compare(size, operands(size));
    if (HasFailure()) return;
  }
}

TEST_P(WideProduct, ConvolutionsOfPackedSequencesGiveTheBitsOfTheTileKernel) {
  for (const Size& size : kConvSizes) {
    for (const int64_t of_sequence : {int64_t{1} << 30, int64_t{1}, int64_t{5}, int64_t{100}}) {
      compare(size, operands(size, of_sequence));
      if (HasFailure()) return;
    }
  }
}

// Rows that follow each other come by other copies than those that may begin anywhere.
TEST_P(WideProduct, ConvolutionsOfOneSignalGiveTheBitsOfTheTileKernel) {
  for (const Size& size : kConvSizes) {
    Operands o = operands(size);
    o.product.taps.first_rows = nullptr;
    compare(size, o);
    if (HasFailure()) return;
  }
}

TEST_P(WideProduct, EveryEpilogueGivesTheBitsOfTheTileKernel) {
  for (const Size& size : {Size{150, {100, 1, 264}}, {70, {96, 7, 96}}}) {
    const Operands o = operands(size);
    const std::vector<float> held = random_values(size.rows * size.matrix.outputs, 7);
    for (const Activation activation :
         {Activation::none, Activation::gelu, Activation::gelu_tanh, Activation::tanh}) {
      for (const bool accumulate : {false, true}) {
        Product product = o.product;
        product.epilogue.activation = activation;
        product.epilogue.accumulate = accumulate;
        product.epilogue.scale = accumulate ? o.scale_there.as<float>() : nullptr;
        const Result result{.before = accumulate ? held : std::vector<float>()};
        const std::vector<float> want = run(product, nullptr, result);
        const Result snaked{.snake = o.alpha_there.as<float>(), .before = result.before};
        const std::vector<float> want_snaked = run(product, nullptr, snaked);
        for (const WideChoice& choice : every_choice(size.matrix)) {
          SCOPED_TRACE(name_of_choice(size, choice));
          expect_same_bits(run(product, &choice, result), want);
          expect_same_bits(run(product, &choice, snaked), want_snaked);
          if (HasFailure()) return;
        }
      }
    }
  }
}

TEST_P(WideProduct, APairGivesSwiglu) {
  const Size size{150, {200, 1, 520, true}};
  const Operands o = operands(size);
  const Expected gate = expected(o, o.w, false), up = expected(o, o.up, false);
  ref::Values want, bound;
  for (size_t i = 0; i < gate.values.size(); ++i) {
    const double g = ref::silu(gate.values[i]), u = up.values[i];
    want.push_back(g * u);
    // The slope of silu is below 1.1; its own value and the product within 8 units.
    bound.push_back(1.1 * gate.bound[i] * (std::abs(u) + up.bound[i]) + std::abs(g) * up.bound[i] +
                    8 * kUnit * std::abs(want[i]) + 1e-30);
  }
  const WideChoice choice = choose_wide(size.matrix, size.rows, kH200);
  expect_close(run(o.product, &choice), want, bound);
}

TEST_P(WideProduct, TheSkinnyKernelGivesTheSameBits) {
  const Size size{16, {72, 1, 520}};
  const Operands o = operands(size);
  const Tensor y = put(std::vector<float>(16 * 72, NAN), {16, 72});
  Product product = o.product;
  product.epilogue.y = y.view().data();
  product.epilogue.y_stride = 72;
  ASSERT_TRUE(skinny_product(ctx(), product, dtype(), nullptr));
  const std::vector<float> want = get(y);
  for (const WideChoice& choice : every_choice(size.matrix)) expect_same_bits(run(o.product, &choice), want);
}

// Products whose sums cancel, and of magnitudes far apart: the order of additions shows.
TEST_P(WideProduct, OperandsOfAnyMagnitudeGiveTheSameBits) {
  const Size size{128, {128, 1, 3072}};
  Operands o = operands(size);
  const std::vector<float> exponents = random_values(static_cast<int64_t>(o.x.size()), 8, 3.0f);
  for (size_t i = 0; i < o.x.size(); ++i) o.x[i] *= std::exp2(std::clamp(exponents[i], -10.0f, 10.0f));
  o.x_there = put(o.x, {size.rows, size.matrix.depth}, dtype());
  o.product.x = o.x_there.view().data();
  const std::vector<float> want = run(o.product, nullptr);
  for (const WideChoice& choice : every_choice(size.matrix)) {
    SCOPED_TRACE(name_of_choice(size, choice));
    expect_same_bits(run(o.product, &choice), want);
  }
}

// A kernel after the other, as a step replays them on other contents of the same memory.
TEST_P(WideProduct, ReplaysReadTheCurrentContentsOfMemory) {
  ctx().graphs = &graphs();
  const Size size{200, {136, 1, 1024}};
  const Operands o = operands(size);
  const Tensor first = put(o.x, {200, 1024}, dtype()),
               second = put(random_values(200 * 1024, 9), {200, 1024}, dtype()),
               y = put(std::vector<float>(200 * 136), {200, 136});
  Product on_second = o.product;
  on_second.x = second.view().data();
  const std::vector<float> want_first = run(o.product, nullptr), want_second = run(on_second, nullptr);
  const std::vector<WideChoice> choices = every_choice(size.matrix);
  for (int i = 0; i < 6; ++i) {
    copy(i % 2 ? second : first, o.x_there);
    run_step(ctx(), {.owner = this, .rows = 200}, [&] {
      for (const WideChoice& choice : choices) {
        Product product = o.product;
        product.epilogue.y = y.view().data();
        product.epilogue.y_stride = 136;
        wide_product_by(ctx(), product, choice);
      }
    });
    expect_same_bits(get(y), i % 2 ? want_second : want_first);
  }
}

INSTANTIATE_TEST_SUITE_P(HalfFloats, WideProduct, testing::Values(DType::bf16, DType::f16),
                         [](const auto& tested) { return std::string(name_of(tested.param)); });

}  // namespace
}  // namespace shoal::ops::cuda
