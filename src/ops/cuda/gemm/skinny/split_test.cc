// Products of few rows whose segments two blocks share have the bits of the others.
#include "ops/cuda/gemm/skinny/skinny_cut.h"
#include "ops/cuda/gemm/skinny/skinny_product.h"
#include "ops/cuda/gemm/skinny/split_cut.h"
#include "ops/cuda/gemm/skinny/split_product.h"
#include "ops/cuda/gemm/skinny/streamed_product.h"
#include "ops/cuda/gemm/sm90/product_bits_testing.h"

namespace shoal::ops::cuda {
namespace {

const Machine kH200{132, 227 << 10, true};
const MatrixShape kOut{2560, 1, 4096}, kDown{2560, 1, 9728};  // S2-Pro's

class SplitProduct : public ProductBits {
 protected:
  std::vector<float> by_clusters(TensorView x, int clusters) {
    return result(x.dim(0),
                  [&](TensorView y) { EXPECT_TRUE(split_product(ctx(), product_of(x, y), clusters)); });
  }
};

TEST(SplitCut, RingsAreDeepAndFit) {
  for (const MatrixShape& shape : {kOut, kDown})
    for (const int64_t rows : {1, 8})
      for (const TileForm form : {TileForm{}, TileForm{8}, TileForm{4, 0}, TileForm{4, 1}, TileForm{4, 2}}) {
        SkinnyArguments a = skinny_arguments(shape, rows, form);
        SCOPED_TRACE(testing::Message()
                     << rows << " rows of depth " << shape.depth << ", bits " << form.bits);
        ASSERT_TRUE(choose_split(a, kH200, 66));
        EXPECT_LE(SplitShared(a).bytes, kH200.shared_bytes);
        EXPECT_GE(a.most_units * a.block_rows, 5);
        const int64_t whole = form.bytes(shape) / kH200.multiprocessors;  // of a block
        EXPECT_GE(a.segments * a.segment_bytes(), std::min<int64_t>(whole, 64 << 10));
      }
}

TEST(SplitCut, TakesLargeMatricesThatDoNotComeOutEven) {
  const TileForm wide, int8{8};
  for (const MatrixShape& shape : {kOut, kDown})
    for (const TileForm& form : {wide, int8}) {
      EXPECT_TRUE(is_split(shape, 2, form, kH200));
      EXPECT_TRUE(is_split(shape, 8, form, kH200));
      EXPECT_FALSE(is_split(shape, 9, form, kH200));
      EXPECT_FALSE(is_split(shape, 8, form, {132, 227 << 10, false}));
    }
  EXPECT_FALSE(is_split(kDown, 1, wide, kH200));
  EXPECT_TRUE(is_split(kDown, 1, int8, kH200));
  EXPECT_FALSE(is_split(kOut, 1, int8, kH200));                   // skinny.cuh holds all of it
  EXPECT_FALSE(is_split({6336, 1, 2560}, 8, wide, kH200));        // 792 rows of tiles: six a block
  EXPECT_FALSE(is_split({9728, 1, 2560, true}, 8, wide, kH200));  // pairs
  EXPECT_FALSE(is_split({2560, 1, 224}, 8, wide, kH200));         // fewer segments
  EXPECT_FALSE(is_split({1024, 1, 3072}, 8, wide, kH200));        // S1-mini's
}

TEST_P(SplitProduct, HasTheBitsOfTheTileKernels) {
  // Units of two and of three rows of tiles, the last one shorter, groups of warps without a unit, outputs
  // that end within a tile, segments that are shorter.
  for (const MatrixShape& shape :
       {MatrixShape{8, 1, 256}, {72, 1, 512}, {1000, 1, 736}, {328, 1, 4096}, {137, 1, 9728}}) {
    use(shape);
    const Tensor x = put(random_values(8 * shape.depth, 1), {8, shape.depth}, dtype());
    for (const int64_t rows : {1, 2, 7, 8}) {
      SCOPED_TRACE(testing::Message() << rows << " rows of " << shape.outputs << " x " << shape.depth);
      const TensorView some = x.view().slice(0, rows);
      const std::vector<float> want = by_tiles(some);
      for (const int clusters : {0, 7, 13, 27}) expect_same_bits(by_clusters(some, clusters), want);
    }
  }
}

TEST_P(SplitProduct, NarrowWeightsHaveTheBitsOfStreams) {
  for (const MatrixFormat& format :
       {MatrixFormat{DType::i8, dtype()}, MatrixFormat{DType::f8, dtype()},
        MatrixFormat{DType::u4, dtype(), 32}, MatrixFormat{DType::u4, dtype(), 64},
        MatrixFormat{DType::u4, dtype(), 128}})
    for (const auto& [outputs, depth] : {std::pair<int64_t, int64_t>{1000, 512}, {1064, 4096}, {137, 9728}}) {
      std::vector<float> w = random_values(outputs * depth, 2, 0.3f);
      const PackedMatrix weight = pack_matrix(ctx(), view_of(w, {outputs, depth}), {}, format);
      const Tensor x = put(random_values(8 * depth, 1), {8, depth}, dtype());
      for (const int64_t rows : {1, 3, 8}) {
        SCOPED_TRACE(testing::Message() << rows << " rows of " << outputs << " x " << depth << ", "
                                        << name_of(format.weights) << " in groups of " << format.group);
        const TensorView some = x.view().slice(0, rows);
        const std::vector<float> want = onto_y(weight, some, [&](const Product& product) {
          EXPECT_TRUE(streamed_product(ctx(), product, nullptr, 5));
        });
        for (const int clusters : {5, 27})  // units of two rows of tiles, of three
          expect_same_bits(
              onto_y(weight, some,
                     [&](const Product& product) { EXPECT_TRUE(split_product(ctx(), product, clusters)); }),
              want);
      }
    }
}

TEST_P(SplitProduct, ReplaysReadTheCurrentContentsOfMemory) {
  use({2120, 1, 2560});
  expect_replays([](Context& ctx, const Product& product) { return split_product(ctx, product); }, 5);
}

INSTANTIATE_TEST_SUITE_P(HalfFloats, SplitProduct, testing::Values(DType::bf16, DType::f16),
                         [](const auto& tested) { return std::string(name_of(tested.param)); });

}  // namespace
}  // namespace shoal::ops::cuda
