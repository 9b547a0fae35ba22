// Products of few rows whose weights stream have the bits of the others, however many units a block has.
#include "ops/cuda/gemm/skinny/skinny_cut.h"
#include "ops/cuda/gemm/skinny/skinny_product.h"
#include "ops/cuda/gemm/skinny/streamed_cut.h"
#include "ops/cuda/gemm/skinny/streamed_product.h"
#include "ops/cuda/gemm/sm90/product_bits_testing.h"

namespace shoal::ops::cuda {
namespace {

const Machine kH200{132, 227 << 10, true};

// One and several units to a block; a last unit of one row of tiles; outputs and inputs that end within a
// tile; segments that are missing or shorter; pieces that are not full; S2-Pro's depths.
const MatrixShape kShapes[] = {{8, 1, 16},       {72, 1, 520},         {1000, 1, 264},      {24, 1, 3072},
                               {4104, 1, 1024},  {2120, 1, 2560},      {328, 1, 4096},      {137, 1, 9728},
                               {3, 1, 16, true}, {1100, 1, 136, true}, {520, 1, 2560, true}};

class StreamedProduct : public ProductBits {
 protected:
  std::vector<float> by_streams(TensorView x, int blocks, const RmsNorm* norm = nullptr) {
    return result(x.dim(0), [&](TensorView y) {
      EXPECT_TRUE(streamed_product(ctx(), product_of(x, y), norm, blocks));
    });
  }
};

TEST(StreamedCut, RingsAreDeepAndFit) {
  constexpr float kSomething = 0;
  for (const MatrixShape& shape :
       {MatrixShape{6144, 1, 2560}, {2560, 1, 4096}, {9728, 1, 2560, true}, {2560, 1, 9728}, {4097, 1, 2560}})
    for (const int64_t rows : {1, 8, 16})
      for (const bool normed : {false, true})
        for (const TileForm form :
             {TileForm{}, TileForm{8}, TileForm{4, 0}, TileForm{4, 1}, TileForm{4, 2}}) {
          if (normed && (rows > kNormRows || shape.depth > 2560)) continue;
          SkinnyArguments a = skinny_arguments(shape, rows, form);
          if (normed) a.norm_weight = &kSomething;
          SCOPED_TRACE(testing::Message() << rows << " rows of " << shape.outputs << " x " << shape.depth);
          ASSERT_TRUE(choose_stream(a, kH200, kH200.multiprocessors));
          EXPECT_LE(StreamedShared(a).bytes,
                    rows == 8 ? kH200.shared_bytes * 4 / 5 : kH200.shared_bytes * 2 / 3);
          EXPECT_GE(a.stages, 3);
          // Before the inputs: 64 KB, of one row 96, or a stage; or all of the ring.
          EXPECT_GE(a.first_stages, 1);
          if (!a.rows_in_shared()) {
            EXPECT_EQ(a.first_stages, a.stages);
          } else if (a.first_stages > 1) {
            EXPECT_LE(a.first_stages * a.segments * a.stage_bytes(), (rows == 1 ? 96 : 64) << 10);
          }
          EXPECT_GE(a.segments * a.segment_bytes(), (form.bits < 16 ? 64 : 80) << 10);
        }
}

TEST(StreamedCut, AUnitOf8BitsIsTwoRowsOfTilesWhereThatMakesFewer) {
  const auto block_rows = [](int64_t outputs, const TileForm& form) {
    SkinnyArguments a = skinny_arguments({outputs, 1, 9728}, 1, form);
    EXPECT_TRUE(choose_stream(a, kH200, kH200.multiprocessors));
    return a.block_rows;
  };
  EXPECT_EQ(block_rows(2560, TileForm{8}), 2);  // 320 rows of tiles: two units a block instead of three
  EXPECT_EQ(block_rows(2560, TileForm{}), 1);   // three rows of tiles instead of four
  EXPECT_EQ(block_rows(1056, TileForm{8}), 1);  // 132: one of each
}

TEST(StreamedCut, TakesMatricesLargerThanWhatBlocksHold) {
  const MatrixShape qkv{6144, 1, 2560}, out{2560, 1, 4096}, down{2560, 1, 9728}, gate_up{9728, 1, 2560, true};
  const TileForm wide, int8{8}, int4{4, 1};
  EXPECT_TRUE(is_streamed(out, 1, wide, kH200));
  EXPECT_FALSE(is_streamed(out, 9, wide, kH200));
  EXPECT_FALSE(is_streamed(out, 8, int8, kH200));
  EXPECT_TRUE(is_streamed(down, 8, int8, kH200));
  EXPECT_FALSE(is_streamed(down, 9, int8, kH200));
  EXPECT_TRUE(is_streamed(gate_up, 16, wide, kH200));
  for (const TileForm& narrow : {int8, int4}) EXPECT_TRUE(is_streamed(gate_up, 2, narrow, kH200));
  EXPECT_TRUE(is_streamed(gate_up, 1, int8, kH200));
  EXPECT_TRUE(is_streamed(qkv, 2, int8, kH200));
  EXPECT_FALSE(is_streamed(qkv, 1, int8, kH200));
  EXPECT_FALSE(is_streamed(gate_up, 1, int4, kH200));
  EXPECT_FALSE(is_streamed({3072, 1, 1024, true}, 1, wide, kH200));  // S1-mini's largest
  EXPECT_FALSE(is_streamed(gate_up, 8, wide, {108, 163 << 10}));
}

TEST_P(StreamedProduct, HasTheBitsOfTheTileKernels) {
  for (const MatrixShape& shape : kShapes) {
    use(shape);
    const int64_t depth = shape.depth;
    const Tensor x = put(random_values(16 * depth, 1), {16, depth}, dtype());
    for (const int64_t rows : {1, 2, 7, 8, 9, 16}) {
      SCOPED_TRACE(testing::Message() << rows << " rows of " << shape.outputs << " x " << depth
                                      << (shape.paired ? ", paired" : ""));
      const TensorView some = x.view().slice(0, rows);
      const std::vector<float> want = by_tiles(some);
      for (const int blocks : {0, 1, 7}) expect_same_bits(by_streams(some, blocks), want);
    }
  }
}

TEST_P(StreamedProduct, NormsUpToEightRows) {
  for (const MatrixShape& shape : kShapes) {
    if (shape.depth > 4096 || shape.depth % 8 != 0) continue;
    use(shape);
    const int64_t depth = shape.depth;
    const Tensor x = put(random_values(8 * depth, 1, 3.0f), {8, depth}),
                 weight = put(random_values(depth, 5), {depth});
    const RmsNorm norm{weight, 1e-5f};
    for (const int64_t rows : {1, 2, 5, 8}) {
      SCOPED_TRACE(testing::Message() << rows << " rows of " << shape.outputs << " x " << depth
                                      << (shape.paired ? ", paired" : ""));
      const TensorView some = x.view().slice(0, rows);
      const Workspace::Scope scope(*ctx().workspace);
      const std::vector<float> want = by_tiles(product_operand(ctx(), some, dtype(), &norm));
      for (const int blocks : {0, 3}) expect_same_bits(by_streams(some, blocks, &norm), want);
    }
  }
}

TEST_P(StreamedProduct, IntegersHaveTheBitsOfTheSkinnyKernel) {
  using Case = std::tuple<MatrixFormat, int64_t, int64_t>;
  for (const auto& [format, outputs, depth] : std::vector<Case>{{{DType::i8, dtype()}, 72, 520},
                                                                {{DType::i8, dtype()}, 1000, 264},
                                                                {{DType::i8, dtype()}, 1064, 2560},
                                                                {{DType::i8, dtype()}, 137, 9728},
                                                                {{DType::u4, dtype(), 64}, 72, 520},
                                                                {{DType::u4, dtype(), 32}, 1000, 264},
                                                                {{DType::u4, dtype(), 32}, 1064, 2560},
                                                                {{DType::u4, dtype(), 64}, 1064, 2560},
                                                                {{DType::u4, dtype(), 128}, 1064, 2560},
                                                                {{DType::u4, dtype(), 64}, 137, 9728},
                                                                {{DType::u4, dtype(), 128}, 137, 9728}}) {
    std::vector<float> w = random_values(outputs * depth, 2, 0.3f);
    const PackedMatrix weight = pack_matrix(ctx(), view_of(w, {outputs, depth}), {}, format);
    const Tensor x = put(random_values(16 * depth, 1), {16, depth}, dtype());
    for (const int64_t rows : {1, 8, 9, 16}) {
      SCOPED_TRACE(testing::Message() << rows << " rows of " << outputs << " x " << depth);
      const TensorView some = x.view().slice(0, rows);
      const std::vector<float> want = onto_y(weight, some, [&](const Product& product) {
        EXPECT_TRUE(skinny_product(ctx(), product, dtype(), nullptr));
      });
      expect_same_bits(
          onto_y(weight, some,
                 [&](const Product& product) { EXPECT_TRUE(streamed_product(ctx(), product, nullptr, 5)); }),
          want);
    }
  }
}

TEST_P(StreamedProduct, ReplaysReadTheCurrentContentsOfMemory) {
  use({2120, 1, 2560});
  expect_replays([](Context& ctx, const Product& product) { return streamed_product(ctx, product, nullptr); },
                 5);
}

INSTANTIATE_TEST_SUITE_P(HalfFloats, StreamedProduct, testing::Values(DType::bf16, DType::f16),
                         [](const auto& tested) { return std::string(name_of(tested.param)); });

}  // namespace
}  // namespace shoal::ops::cuda
