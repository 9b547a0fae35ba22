// Products of 8- and 4-bit weights as they are kept give the bits of the same weights widened before.
#include "ops/cuda/gemm/sm90/partial_product.h"
#include "ops/cuda/gemm/sm90/product_bits_testing.h"
#include "ops/cuda/gemm/sm90/swapped_product.h"
#include "ops/cuda/gemm/sm90/wide_product.h"

namespace shoal::ops::cuda {
namespace {

constexpr TileForm kInt8{.bits = 8}, kInt4{.bits = 4, .shift = 1};
const Machine kH200{132, 227 << 10, true};
constexpr int kHalf = 115'712;  // of a multiprocessor, less what each block reserves

TEST(SwappedPlan, SuitsLinearMatricesOfEvenSegments) {
  const auto suits = [](const MatrixShape& shape, const TileForm& form, int64_t rows,
                        bool by_segment = false) {
    return swapped_plan(shape, form, rows, by_segment, kH200).warps > 0;
  };
  for (const TileForm& form : {kInt8, kInt4, TileForm{.bits = 4}}) {
    EXPECT_TRUE(suits({4096, 1, 1024}, form, 9));
    EXPECT_TRUE(suits({4096, 1, 1024}, form, 64));
    EXPECT_TRUE(suits({1024, 1, 3072}, form, 64, true));
    EXPECT_TRUE(suits({4096, 1, 1024}, form, 192));
    EXPECT_TRUE(suits({4096, 1, 1024}, form, 5000));
    EXPECT_TRUE(suits({9728, 1, 2560, true}, form, 65));
    EXPECT_FALSE(suits({4096, 1, 1000}, form, 64));
    EXPECT_FALSE(suits({4096, 1, 768}, form, 64));  // segments of three tiles
    EXPECT_FALSE(suits({4096, 2, 1024}, form, 64));
    EXPECT_TRUE(suits({3072, 1, 1024, true}, form, 64));
    EXPECT_FALSE(suits({3072, 1, 1024, true}, form, 64, true));
  }
  EXPECT_FALSE(suits({4096, 1, 1024}, {}, 64));                       // 16 bits
  EXPECT_FALSE(suits({4096, 1, 1024}, {.bits = 4, .shift = 2}, 64));  // a group is two stages
}

// S2-Pro's: w1 and w3, and w2 by segment, in a little less than a block a multiprocessor.
TEST(SwappedPlan, AllBlocksOfAModelsMatricesRunAtOnce) {
  for (const int64_t rows : {16, 32, 64}) {
    EXPECT_EQ(swapped_plan({9728, 1, 2560, true}, kInt8, rows, false, kH200).warps, 10);
    EXPECT_EQ(swapped_plan({2560, 1, 9728}, kInt8, rows, true, kH200).warps, 10);
    EXPECT_EQ(swapped_plan({6144, 1, 2560}, kInt8, rows, false, kH200).warps, 3);
    const SwappedPlan plan = swapped_plan({9728, 1, 2560, true}, kInt4, rows, false, kH200);
    EXPECT_EQ(plan.rows, rows);
    EXPECT_LE(plan.bytes, kH200.shared_bytes);
    EXPECT_EQ(plan.stage_bytes % 128, 0);
  }
  EXPECT_LE(swapped_plan({1024, 1, 2048}, kInt8, 64, true, kH200).bytes, kHalf);
  EXPECT_LE(swapped_plan({4096, 1, 1024}, kInt4, 32, false, kH200).bytes, kHalf);
  const auto blocks = [](const MatrixShape& shape, bool by_segment) {
    const int64_t rows = 2 * swapped_plan(shape, kInt8, 64, by_segment, kH200).warps;
    return (shape.tile_rows() + rows - 1) / rows * (by_segment ? kSegments : 1);
  };
  EXPECT_EQ(blocks({9728, 1, 2560, true}, false), 122);
  EXPECT_EQ(blocks({2560, 1, 9728}, true), 128);
}

// Parts of a divided device, smaller GPUs.
TEST(SwappedPlan, IsThereWhateverTheMultiprocessors) {
  for (const int multiprocessors : {4, 16, 68, 78, 114, 144})
    for (const int64_t rows : {9, 64, 65, 192, 193, 384, 2048, 5000})
      for (const MatrixShape& shape :
           {MatrixShape{4096, 1, 1024}, {1024, 1, 3072}, {2560, 1, 9728}, {9728, 1, 2560, true}})
        for (const TileForm& form : {kInt8, kInt4, TileForm{.bits = 4}})
          for (const bool by_segment : {false, true}) {
            if (by_segment && shape.paired) continue;
            const Machine machine{multiprocessors, 227 << 10, true};
            const SwappedPlan plan = swapped_plan(shape, form, rows, by_segment, machine);
            EXPECT_GT(plan.warps, 0) << rows << " rows, " << multiprocessors;
            EXPECT_LE(plan.bytes, machine.shared_bytes);
          }
}

// Of rows for which a block has not all sums.
TEST(SwappedPlan, ABlockHasSomeOfManyRows) {
  for (const auto& [shape, rows] : {std::pair{MatrixShape{9728, 1, 2560, true}, 65},
                                    {MatrixShape{4096, 1, 1024}, 193},
                                    {MatrixShape{4096, 1, 1024}, 5000},
                                    {MatrixShape{1024, 1, 3072}, 512}})
    for (const TileForm& form : {kInt8, kInt4, TileForm{.bits = 4}}) {
      const SwappedPlan plan = swapped_plan(shape, form, rows, false, kH200);
      EXPECT_TRUE(plan.rows == 64 || plan.rows == 128 || plan.rows == 160);
      EXPECT_EQ(plan.row_groups, 1);
      EXPECT_GE(plan.stages, 4);
      EXPECT_LE(plan.bytes, kH200.shared_bytes);
    }
  EXPECT_EQ(swapped_plan({4096, 1, 1024}, kInt8, 192, false, kH200).rows, 192);
  // 512 rows of S2-Pro's w1 and w3 are four blocks of 128 or of 160; S1-mini's wo has few outputs.
  EXPECT_EQ(swapped_plan({9728, 1, 2560, true}, kInt8, 512, false, kH200).rows, 128);
  EXPECT_EQ(swapped_plan({9728, 1, 2560, true}, kInt8, 2048, false, kH200).rows, 160);
  EXPECT_EQ(swapped_plan({1024, 1, 2048}, kInt8, 512, false, kH200).warps, 4);
}

// More outputs than all multiprocessors take at once; a last block, and a last row of tiles, that are not
// full; segments of two tiles, of an odd number of stages, and of many.
const MatrixShape kShapes[] = {{4096, 1, 1024},       {9, 1, 512},          {1100, 1, 2560},
                               {27'000, 1, 512},      {2560, 1, 9728},      {40, 1, 512, true},
                               {3050, 1, 1536, true}, {9728, 1, 2560, true}};

class SwappedProduct : public ProductBitsOf<MatrixFormat> {};

TEST_P(SwappedProduct, HasTheBitsOfTheTileKernels) {
  int done = 0;
  for (const MatrixShape& shape : kShapes) {
    use(shape);
    const Tensor x = put(random_values(500 * shape.depth, 1), {500, shape.depth}, dtype());
    for (const int64_t rows : {9, 16, 17, 33, 64, 65, 128, 192, 193, 300, 500}) {
      if (rows > 192 && shape.outputs > 10'000) continue;  // takes long
      SCOPED_TRACE(testing::Message() << rows << " rows of " << shape.outputs << " x " << shape.depth);
      if (swapped_plan(shape, form_of(format()), rows, false, machine_of(ctx())).warps == 0) continue;
      const TensorView some = x.view().slice(0, rows);
      for (const bool bare : {false, true})
        for (const DType y_dtype : {DType::f32, dtype()}) {
          // Two outputs are stored at a time in rows of an even stride.
          bare_ = bare, y_dtype_ = y_dtype, apart_ = shape.paired && rows % 2 == 0;
          expect_same_bits(by(swapped_product, some), by_tiles(some));
          ++done;
        }
    }
  }
  EXPECT_GT(done, 270);
}

TEST_P(SwappedProduct, HasTheSumsOfSegmentsOfTheKernelsOf16Bits) {
  bare_ = true;
  for (const MatrixShape& shape :
       {MatrixShape{1024, 1, 2048}, {1024, 1, 3072}, {2560, 1, 9728}, {2568, 1, 9728}}) {
    use(shape);
    const bool is_large = segments_shape(shape, 64, machine_of(ctx())).has_value();
    for (const int64_t rows : {9, 16, 17, 32, 64, 150, 200, 256, 300}) {
      if (is_large ? rows > 256 : rows <= kSkinnyRows) continue;
      if (!segments_shape(shape, rows, machine_of(ctx())) &&
          partial_plan(shape, rows, machine_of(ctx())).row_groups == 0)
        continue;  // more blocks than this GPU runs at once
      SCOPED_TRACE(testing::Message() << rows << " rows of " << shape.outputs << " x " << shape.depth);
      const Tensor x = put(random_values(rows * shape.depth, 1), {rows, shape.depth}, dtype());
      const Tensor y = garbage({rows, shape.outputs}), sums = garbage({kSegments, rows, shape.outputs}),
                   want = garbage({kSegments, rows, shape.outputs});
      const Product product = product_of(x, y);
      EXPECT_TRUE(swapped_segments(ctx(), product, sums));
      const Workspace::Scope scope(*ctx().workspace);
      if (segments_shape(shape, rows, machine_of(ctx())))
        wide_segments(ctx(), widened(ctx(), product), want);
      else
        EXPECT_TRUE(partial_product(ctx(), widened(ctx(), product), want));
      expect_same_bits(get(sums), get(want));
    }
  }
}

TEST_P(SwappedProduct, LeavesActivationsToOthers) {
  use({1024, 1, 1024});
  activation_ = Activation::gelu;
  const Tensor x = put(random_values(40 * 1024, 1), {40, 1024}, dtype()), y = garbage({40, 1024});
  const std::vector<float> before = get(y);
  EXPECT_FALSE(swapped_product(ctx(), product_of(x, y)));
  expect_same_bits(get(y), before);
}

TEST_P(SwappedProduct, ReplaysReadTheCurrentContentsOfMemory) {
  use({1024, 1, 1024});
  expect_replays(swapped_product, 40);
}

INSTANTIATE_TEST_SUITE_P(
    Formats, SwappedProduct,
    testing::Values(MatrixFormat{DType::i8, DType::bf16}, MatrixFormat{DType::i8, DType::f16},
                    MatrixFormat{DType::f8, DType::bf16}, MatrixFormat{DType::f8, DType::f16},
                    MatrixFormat{DType::u4, DType::bf16, 32}, MatrixFormat{DType::u4, DType::bf16, 64},
                    MatrixFormat{DType::u4, DType::f16, 64}),
    [](const auto& tested) {
      return std::string(name_of(tested.param.weights)) + "_" + std::string(name_of(tested.param.operand)) +
             "_" + std::to_string(tested.param.group);
    });

}  // namespace
}  // namespace shoal::ops::cuda
