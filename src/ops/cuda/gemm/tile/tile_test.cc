#include "ops/cuda/device/cuda_testing.h"
#include "ops/cuda/gemm/skinny/skinny_product.h"
#include "ops/cuda/gemm/tile/tile_product.h"
#include "ops/linear.h"
#include "ops/product_testing.h"

namespace shoal::ops::cuda {
namespace {

std::vector<TileChoice> every_choice(const MatrixShape& matrix, int64_t rows, const Machine& machine) {
  std::vector<TileChoice> choices;
  for (int shape = 0; shape < static_cast<int>(kTileShapes.size()); ++shape)
    for (const bool split : {false, true})
      if (const TileChoice choice{shape, split}; can_do(choice, matrix, rows, machine))
        choices.push_back(choice);
  return choices;
}

int64_t blocks_of(const TileChoice& choice, const MatrixShape& matrix, int64_t rows) {
  const TileShape& shape = kTileShapes[static_cast<size_t>(choice.shape)];
  const int64_t outputs = matrix.tile_rows() * kTileOutputs;
  return (rows + shape.rows - 1) / shape.rows * ((outputs + shape.outputs - 1) / shape.outputs) *
         (choice.split ? segments_of(matrix) : 1);
}

TEST(TileChoice, EveryProductHasAKernelOnEveryMachine) {
  for (const Machine& machine : {Machine{132, 227 << 10}, {108, 163 << 10}, {128, 99 << 10}}) {
    for (const MatrixShape& matrix : {MatrixShape{1, 1, 1},
                                      {4096, 1, 1024},
                                      {3072, 1, 1024, true},
                                      {96, 7, 96},
                                      {8, 40, 8},
                                      {1024, 1, 3072}}) {
      for (const int64_t rows : {1, 17, 300, 100000}) {
        const TileChoice choice = choose_tile(matrix, rows, machine);
        EXPECT_TRUE(can_do(choice, matrix, rows, machine));
        EXPECT_LE(shared_bytes_of(kTileShapes[static_cast<size_t>(choice.shape)]), machine.shared_bytes);
      }
    }
  }
}

TEST(TileChoice, DepthIsSplitOnlyWhereThereAreSegmentsForAll) {
  for (const TileChoice& choice : every_choice({64, 9, 64}, 100, {}))
    EXPECT_EQ(kTileShapes[static_cast<size_t>(choice.shape)].depth_groups, 1);
  for (const TileChoice& choice : every_choice({64, 1, 32}, 100, {})) EXPECT_FALSE(choice.split);
}

// The steps of many users and the frames of one stream.
TEST(TileChoice, FewRowsFillAThirdOfTheGpu) {
  for (const MatrixShape& matrix :
       {MatrixShape{4096, 1, 1024}, {1024, 1, 2048}, {3072, 1, 1024, true}, {768, 7, 768}})
    for (const int64_t rows : {32, 64, 256})
      EXPECT_GE(blocks_of(choose_tile(matrix, rows, {}), matrix, rows), 44);
}

TEST(TileChoice, ManyRowsTakeTheLargestBlocks) {
  EXPECT_EQ(kTileShapes[static_cast<size_t>(choose_tile({4096, 1, 4096}, 2048, {}).shape)].rows, 128);
  EXPECT_EQ(kTileShapes[static_cast<size_t>(choose_tile({96, 7, 96}, 131072, {}).shape)].outputs, 96);
}

struct Size {
  int64_t rows;
  MatrixShape matrix;
};

// Blocks that are full and blocks that are not, one segment and eight, segments of one tile and of several
// with a shorter last one, inputs that end within a tile.
const Size kSizes[] = {{17, {24, 1, 40}},        {70, {100, 1, 264}},       {130, {144, 1, 1064}},
                       {200, {20, 1, 32}},       {33, {136, 1, 96}},        {64, {24, 1, 3104}},
                       {50, {40, 1, 136, true}}, {140, {100, 1, 600, true}}};

class TileProduct : public CudaTest, public testing::WithParamInterface<DType> {
 protected:
  static DType dtype() { return GetParam(); }

  struct Operands {
    std::vector<float> x, w, up, bias;
    PackedMatrix weight;
    Tensor x_there;
    Product product;
  };

  Operands operands(const Size& size) {
    const MatrixShape& m = size.matrix;
    Operands o{random_values(size.rows * m.depth, 1),
               random_values(m.outputs * m.depth, 2, 0.3f),
               random_values(m.outputs * m.depth, 3, 0.3f),
               random_values(m.outputs, 4),
               {},
               {},
               {}};
    const TensorView w = view_of(o.w, {m.outputs, m.depth}), up = view_of(o.up, {m.outputs, m.depth});
    o.weight = m.paired ? pack_gate_up(ctx(), w, up, dtype())
                        : pack_matrix(ctx(), w, view_of(o.bias, {m.outputs}), dtype());
    o.x_there = put(o.x, {size.rows, m.depth}, dtype());
    o.product = {.shape = m,
                 .format = dtype(),
                 .weight = o.weight.storage.view().data(),
                 .x = o.x_there.view().data(),
                 .x_stride = m.depth,
                 .rows = size.rows,
                 .taps = {},
                 .epilogue = {.bias = m.paired ? nullptr : o.weight.bias.as<float>()}};
    return o;
  }

  // With its result in a tensor of `y_dtype`, whose rows are wider by `margin`.
  std::vector<float> run(Product product, const TileChoice& choice, DType y_dtype = DType::f32,
                         int64_t margin = 0) {
    const int64_t outputs = product.shape.outputs;
    const Tensor y = put(std::vector<float>(static_cast<size_t>(product.rows * (outputs + margin)), NAN),
                         {product.rows, outputs + margin}, y_dtype);
    product.epilogue.y = y.view().data();
    product.epilogue.y_stride = outputs + margin;
    product.epilogue.y_dtype = y_dtype;
    tile_product_by(ctx(), product, choice);
    return get(y.view().columns(0, outputs));
  }
};

TEST_P(TileProduct, EveryKernelGivesTheSameBitsAndMatchesTheReference) {
  for (const Size& size : kSizes) {
    const MatrixShape& m = size.matrix;
    const Operands o = operands(size);
    const std::vector<TileChoice> choices = every_choice(m, size.rows, machine_of(ctx()));
    ASSERT_GE(choices.size(), 6u);
    const std::vector<float> first = run(o.product, choices[0]);
    if (!m.paired) {
      const ref::Values x = wide(rounded_to(o.x, dtype())), w = wide(rounded_to(o.w, dtype()));
      expect_close(first, ref::linear(x, w, wide(o.bias), m.depth),
                   product_bound(ref::linear(magnitudes(x), magnitudes(w), magnitudes(wide(o.bias)), m.depth),
                                 m.depth, dtype()));
    }
    for (const TileChoice& choice : choices) {
      SCOPED_TRACE(testing::Message() << size.rows << " x " << m.outputs << " x " << m.depth << ", shape "
                                      << choice.shape << (choice.split ? ", split" : ""));
      expect_same_bits(run(o.product, choice), first);
      expect_same_bits(run(o.product, choice, DType::f32, 1), first);
      const std::vector<float> narrow = run(o.product, choice, dtype());
      expect_same_bits(narrow, rounded_to(first, dtype()));
    }
  }
}

TEST_P(TileProduct, APairGivesSwiglu) {
  const Size size{50, {40, 1, 136, true}};
  const Operands o = operands(size);
  const ref::Values x = wide(rounded_to(o.x, dtype())), gate = wide(rounded_to(o.w, dtype())),
                    up = wide(rounded_to(o.up, dtype()));
  const ref::Values g = ref::linear(x, gate, {}, 136), u = ref::linear(x, up, {}, 136);
  const ref::Values g_error =
                        product_bound(ref::linear(magnitudes(x), magnitudes(gate), {}, 136), 136, dtype()),
                    u_error =
                        product_bound(ref::linear(magnitudes(x), magnitudes(up), {}, 136), 136, dtype());
  ref::Values want, bound;
  for (size_t i = 0; i < g.size(); ++i) {
    want.push_back(ref::silu(g[i]) * u[i]);
    // The slope of silu is below 1.1; its own value and the product within 8 units.
    bound.push_back(1.1 * g_error[i] * (std::abs(u[i]) + u_error[i]) +
                    std::abs(ref::silu(g[i])) * u_error[i] + 8 * kUnit * std::abs(want[i]) + 1e-30);
  }
  expect_close(run(o.product, choose_tile(size.matrix, size.rows, machine_of(ctx()))), want, bound);
}

TEST_P(TileProduct, ARowIsTheSameAmongAnyNumberOfRows) {
  const Operands o = operands({300, {72, 1, 520}});
  const Machine machine = machine_of(ctx());
  const std::vector<float> all = run(o.product, choose_tile(o.product.shape, 300, machine));
  for (const int64_t rows : {1, 16, 17, 40, 64, 129}) {
    Product part = o.product;
    part.rows = rows;
    expect_same_bits(run(part, choose_tile(part.shape, rows, machine)),
                     {all.begin(), all.begin() + rows * 72});
  }
}

TEST_P(TileProduct, TheSkinnyKernelGivesTheSameBits) {
  const Operands o = operands({16, {72, 1, 520}});
  const std::vector<float> tile = run(o.product, choose_tile(o.product.shape, 16, machine_of(ctx())));
  const Tensor y = put(std::vector<float>(16 * 72, NAN), {16, 72});
  Product product = o.product;
  product.epilogue.y = y.view().data();
  product.epilogue.y_stride = 72;
  ASSERT_TRUE(skinny_product(ctx(), product, dtype(), nullptr));
  expect_same_bits(get(y), tile);
}

// The counters of split products are ready for the next one, also where a step is replayed on other contents.
TEST_P(TileProduct, SplitProductsGiveTheSameBitsWhenReplayed) {
  ctx().graphs = &graphs();
  const Operands first = operands({40, {72, 1, 520}});
  const std::vector<float> more = random_values(40 * 520, 9);
  const Tensor same = put(first.x, {40, 520}, dtype()), other = put(more, {40, 520}, dtype()),
               y = put(std::vector<float>(40 * 72), {40, 72});
  Product product = first.product;
  product.epilogue.y = y.view().data();
  product.epilogue.y_stride = 72;
  const TileChoice split{4, true};
  ASSERT_TRUE(can_do(split, product.shape, 40, machine_of(ctx())));
  const std::vector<float> want_first = run(first.product, {4, false});
  Product with_other = first.product;
  with_other.x = other.view().data();
  const std::vector<float> want_other = run(with_other, {4, false});
  for (int i = 0; i < 6; ++i) {
    copy(i % 2 ? other : same, first.x_there);
    run_step(ctx(), {.owner = this, .rows = 40}, [&] { tile_product_by(ctx(), product, split); });
    expect_same_bits(get(y), i % 2 ? want_other : want_first);
  }
}

INSTANTIATE_TEST_SUITE_P(HalfFloats, TileProduct, testing::Values(DType::bf16, DType::f16),
                         [](const auto& tested) { return std::string(name_of(tested.param)); });

}  // namespace
}  // namespace shoal::ops::cuda
