// Products of few rows give the bits of those of many, whatever a block's part of the matrix is.
#include "ops/cuda/device/cuda_testing.h"
#include "ops/cuda/gemm/skinny/skinny_cut.h"
#include "ops/cuda/gemm/skinny/skinny_product.h"
#include "ops/cuda/gemm/tile/tile_product.h"
#include "ops/linear.h"
#include "ops/product_testing.h"

namespace shoal::ops::cuda {
namespace {

// One and several rows of tiles to a block on GPUs of about a hundred multiprocessors, more blocks than run
// at once, a last block with fewer rows; one segment and eight, the last one shorter; inputs that end within
// a tile; segments that stream through shared memory, the last piece of them full and not.
const MatrixShape kShapes[] = {
    {8, 1, 16},          {8, 1, 40},       {9, 1, 1000},      {72, 1, 520},          {24, 1, 3072},
    {1024, 1, 2048},     {4097, 1, 1024},  {3072, 1, 264},    {2048, 1, 72},         {24, 1, 16384},
    {17, 1, 9736},       {3, 1, 16, true}, {40, 1, 40, true}, {3072, 1, 1024, true}, {1100, 1, 136, true},
    {12, 1, 16384, true}};

TEST(SkinnyCut, ALongRowOfFewerBitsIsStagedWhereThereIsRoom) {
  const auto cut = [](const MatrixShape& shape, int64_t rows, const TileForm& form, const Machine& machine) {
    SkinnyArguments a = skinny_arguments(shape, rows, form);
    EXPECT_TRUE(choose_half_cut(a, machine));
    EXPECT_LE(SkinnyShared(a).bytes, machine.shared_bytes);
    return a;
  };
  const Machine h200{132, 227 << 10, true}, ada{128, 99 << 10};
  const MatrixShape out{2560, 1, 4096}, deep{1024, 1, 11008};
  EXPECT_TRUE(cut(out, 1, TileForm{8}, h200).staged);
  EXPECT_EQ(cut(out, 1, TileForm{8}, h200).block_rows, 2);
  EXPECT_EQ(cut(out, 1, TileForm{4, 1}, h200).block_rows, 1);
  EXPECT_FALSE(cut(out, 2, TileForm{8}, h200).staged);
  EXPECT_FALSE(cut(out, 1, TileForm{}, h200).staged);
  EXPECT_FALSE(cut({1024, 1, 3072}, 1, TileForm{8}, h200).staged);  // segments of twelve tiles
  EXPECT_TRUE(cut(deep, 1, TileForm{8}, h200).staged);
  EXPECT_TRUE(cut({2560, 1, 9728}, 1, TileForm{8}, ada).staged);
  EXPECT_FALSE(cut(deep, 1, TileForm{8}, ada).staged);  // its weights fit, the row beside them does not
}

TEST(SkinnyCut, ANormedRowIsMultipliedByManyWarps) {
  constexpr float kSomething = 0;
  const auto block_rows = [&](const MatrixShape& shape, int64_t rows, const TileForm& form) {
    SkinnyArguments a = skinny_arguments(shape, rows, form);
    a.norm_weight = &kSomething;
    choose_cut(a, {132, 227 << 10, true});
    return a.block_rows;
  };
  EXPECT_EQ(block_rows({6144, 1, 2560}, 1, TileForm{8}), 2);
  EXPECT_EQ(block_rows({6144, 1, 2560}, 2, TileForm{8}), 3);
  EXPECT_EQ(block_rows({4096, 1, 1024}, 1, TileForm{}), 4);
  EXPECT_EQ(block_rows({3072, 1, 1024, true}, 1, TileForm{}), 4);
  EXPECT_EQ(block_rows({3072, 1, 1024, true}, 2, TileForm{}), 6);
  EXPECT_EQ(block_rows({8, 1, 16384}, 1, TileForm{}), 1);
}

// They take the place of the weights that their warp, and nobody else, has read.
TEST(SkinnyCut, SumsLieWhereTheirSegmentsTilesWere) {
  const Machine h200{132, 227 << 10, true};
  const auto check = [](const SkinnyArguments& a) {
    const int sums = (a.rows > 8 ? 16 : 8) * kTileOutputs * 4;
    for (int segment = 0; segment < a.segments; ++segment) {
      const int begin = segment * a.segment_tiles, tiles = std::min(a.segment_tiles, a.row_tiles - begin);
      const int place = segment * a.segment_stride;
      // Where the next segment's begin, the next row's, or what is behind all.
      const int end = segment + 1 < a.segments ? place + a.segment_stride
                      : a.joined               ? a.row_stride
                                               : place + a.row_stride;
      EXPECT_LE(place + sums, end);
      if (!a.joined) continue;
      EXPECT_EQ(place, a.form.start_of(begin));
      EXPECT_EQ(end, place + a.form.records(begin, tiles) * a.form.record_bytes());
    }
    EXPECT_LE((a.block_rows - 1) * a.row_stride + (a.segments - 1) * a.segment_stride + sums,
              a.places_bytes());
  };
  constexpr float kSomething = 0;
  for (const MatrixShape& shape : kShapes)
    for (const int64_t rows : {1, 8, 16})
      for (const TileForm form : {TileForm{}, TileForm{8}, TileForm{4, 0}, TileForm{4, 1}, TileForm{4, 2}}) {
        SCOPED_TRACE(testing::Message() << rows << " rows of " << shape.outputs << " x " << shape.depth);
        SkinnyArguments a = skinny_arguments(shape, rows, form), normed = a, half = a;
        normed.norm_weight = &kSomething;
        choose_cut(a, h200), choose_cut(normed, h200);
        check(a), check(normed);
        if (choose_half_cut(half, h200)) check(half);
      }
}

class SkinnyProduct : public CudaTest, public testing::WithParamInterface<DType> {
 protected:
  static DType dtype() { return GetParam(); }

  void use(const MatrixShape& matrix) {
    shape_ = matrix;
    std::vector<float> w = random_values(matrix.outputs * matrix.depth, 2, 0.3f), up = w, bias, scale;
    std::ranges::reverse(up);
    const Shape size{matrix.outputs, matrix.depth};
    if (matrix.paired) {
      weight_ = pack_gate_up(ctx(), view_of(w, size), view_of(up, size), dtype());
      return;
    }
    bias = random_values(matrix.outputs, 3), scale = random_values(matrix.outputs, 4);
    weight_ = pack_matrix(ctx(), view_of(w, size), view_of(bias, {matrix.outputs}), dtype());
    scale_ = put(scale, {matrix.outputs});
  }

  Product product_of(TensorView x, TensorView y) const {
    Product product{.shape = shape_,
                    .format = dtype(),
                    .weight = weight_.storage.view().data(),
                    .x = x.data(),
                    .x_stride = x.stride(0),
                    .rows = x.dim(0),
                    .taps = {},
                    .epilogue = {.y = y.data(), .y_stride = y.stride(0)}};
    if (shape_.paired) return product;
    product.epilogue.bias = weight_.bias.as<float>();
    product.epilogue.scale = scale_.as<float>();
    product.epilogue.accumulate = true;
    return product;
  }

  // With the result of `multiply` on top of what y held before, in rows that lie apart.
  template <typename Multiply>
  std::vector<float> result(TensorView x, Multiply multiply) {
    const int64_t rows = x.dim(0), stride = shape_.outputs + 5;
    const Tensor y = put(random_values(rows * stride, 6), {rows, stride});
    multiply(product_of(x, y.view().columns(0, shape_.outputs)));
    return get(y);
  }
  std::vector<float> by_tiles(TensorView x) {
    return result(x, [&](const Product& product) {
      tile_product_by(ctx(), product, choose_tile(shape_, product.rows, machine_of(ctx())));
    });
  }
  std::vector<float> by_skinny(TensorView x, const RmsNorm* norm = nullptr) {
    return result(
        x, [&](const Product& product) { EXPECT_TRUE(skinny_product(ctx(), product, x.dtype(), norm)); });
  }

  MatrixShape shape_;
  PackedMatrix weight_;
  Tensor scale_;
};

TEST_P(SkinnyProduct, HasTheBitsOfTheTileKernels) {
  for (const MatrixShape& shape : kShapes) {
    use(shape);
    const int64_t depth = shape.depth;
    const std::vector<float> values = random_values(16 * depth, 1);
    const Tensor x = put(values, {16, depth}, dtype()), wide = put(values, {16, depth});
    for (const int64_t rows : {1, 2, 7, 8, 9, 16}) {
      SCOPED_TRACE(testing::Message() << rows << " rows of " << shape.outputs << " x " << depth
                                      << (shape.paired ? ", paired" : ""));
      const std::vector<float> want = by_tiles(x.view().slice(0, rows));
      expect_same_bits(by_skinny(x.view().slice(0, rows)), want);
      expect_same_bits(by_skinny(wide.view().slice(0, rows)), want);
    }
  }
}

TEST_P(SkinnyProduct, NormsUpToEightRows) {
  for (const MatrixShape& shape : kShapes) {
    if (shape.depth > 4096) continue;
    use(shape);
    const int64_t depth = shape.depth;
    const Tensor x = put(random_values(16 * depth, 1, 3.0f), {16, depth}),
                 weight = put(random_values(depth, 5), {depth});
    const RmsNorm norm{weight, 1e-5f};
    for (const int64_t rows : {1, 2, 8, 9, 16}) {
      SCOPED_TRACE(testing::Message() << rows << " rows of " << shape.outputs << " x " << depth
                                      << (shape.paired ? ", paired" : ""));
      const TensorView some = x.view().slice(0, rows);
      Workspace::Scope scope(*ctx().workspace);
      const std::vector<float> want = by_tiles(product_operand(ctx(), some, dtype(), &norm));
      // More rows than are normed, or no place for them in shared memory: nothing may have happened.
      bool done = false;
      const std::vector<float> got = result(
          some, [&](const Product& product) { done = skinny_product(ctx(), product, DType::f32, &norm); });
      EXPECT_FALSE(done && rows > 8);
      if (done || rows == 1)
        expect_same_bits(got, want);
      else
        expect_same_bits(got, result(some, [](const Product&) {}));
    }
  }
}

TEST_P(SkinnyProduct, RefusesNormedRowsThatDoNotFit) {
  use({8, 1, 16384});
  const Tensor x = put(std::vector<float>(8 * 16384, 1.0f), {8, 16384}),
               weight = put(std::vector<float>(16384, 1.0f), {16384});
  const RmsNorm norm{weight, 1e-5f};
  result(x, [&](const Product& product) { EXPECT_FALSE(skinny_product(ctx(), product, DType::f32, &norm)); });
}

INSTANTIATE_TEST_SUITE_P(HalfFloats, SkinnyProduct, testing::Values(DType::bf16, DType::f16),
                         [](const auto& tested) { return std::string(name_of(tested.param)); });

}  // namespace
}  // namespace shoal::ops::cuda
