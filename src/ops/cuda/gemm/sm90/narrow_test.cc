// Products of 8- and 4-bit weights as they are kept give the bits of the same weights widened before.
#include "ops/cuda/gemm/sm90/narrow_product.h"
#include "ops/cuda/gemm/sm90/partial_product.h"
#include "ops/cuda/gemm/sm90/wide_kernels_testing.h"
#include "ops/cuda/gemm/sm90/wide_product.h"
#include "ops/cuda/gemm/tile/tile_product.h"
#include "ops/linear.h"
#include "ops/product_testing.h"
#include "ops/step_graph.h"
#include "ops/transfer.h"

namespace shoal::ops::cuda {
namespace {

constexpr TileForm kInt8{.bits = 8}, kInt4{.bits = 4, .shift = 1};
const Machine kH200{132, 227 << 10, true};

TEST(NarrowPlan, SuitsLinearMatricesOfEvenSegmentsAndFewRows) {
  const auto suits = [](const MatrixShape& shape, const TileForm& form, int64_t rows,
                        bool by_segment = false) {
    return narrow_plan(shape, form, rows, by_segment, kH200).warps > 0;
  };
  for (const TileForm& form : {kInt8, kInt4, TileForm{.bits = 4}}) {
    EXPECT_TRUE(suits({4096, 1, 1024}, form, 9));
    EXPECT_TRUE(suits({4096, 1, 1024}, form, 64));
    EXPECT_TRUE(suits({1024, 1, 3072}, form, 64, true));
    EXPECT_TRUE(suits({4096, 1, 1024}, form, 192));
    EXPECT_FALSE(suits({4096, 1, 1024}, form, 193));
    EXPECT_FALSE(suits({9728, 1, 2560, true}, form, 65));  // too many sums
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
TEST(NarrowPlan, AllBlocksOfAModelsMatricesRunAtOnce) {
  for (const int64_t rows : {16, 32, 64}) {
    EXPECT_EQ(narrow_plan({9728, 1, 2560, true}, kInt8, rows, false, kH200).warps, 10);
    EXPECT_EQ(narrow_plan({2560, 1, 9728}, kInt8, rows, true, kH200).warps, 10);
    EXPECT_EQ(narrow_plan({6144, 1, 2560}, kInt8, rows, false, kH200).warps, 3);
    const NarrowPlan plan = narrow_plan({9728, 1, 2560, true}, kInt4, rows, false, kH200);
    EXPECT_EQ(plan.rows, rows);
    EXPECT_LE(plan.bytes, kH200.shared_bytes);
    EXPECT_EQ(plan.stage_bytes % 128, 0);
  }
  EXPECT_LE(narrow_plan({1024, 1, 2048}, kInt8, 64, true, kH200).bytes, kH200.shared_bytes / 2);
}

// More outputs than all multiprocessors take at once; a last block, and a last row of tiles, that are not
// full; segments of two tiles, of an odd number of stages, and of many.
const MatrixShape kShapes[] = {{4096, 1, 1024},       {9, 1, 512},          {1100, 1, 2560},
                               {27'000, 1, 512},      {2560, 1, 9728},      {40, 1, 512, true},
                               {3050, 1, 1536, true}, {9728, 1, 2560, true}};

class NarrowProductTest : public CudaTest, public testing::WithParamInterface<MatrixFormat> {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    if (!IsSkipped() && !has_wgmma(ctx())) GTEST_SKIP() << "no kernels for this GPU";
  }

  void use(const MatrixShape& matrix) {
    shape_ = matrix;
    std::vector<float> w = random_values(matrix.outputs * matrix.depth, 2, 0.3f), up = w;
    std::ranges::reverse(up);
    const Shape size{matrix.outputs, matrix.depth};
    std::vector<float> bias = random_values(matrix.outputs, 3);
    weight_ = matrix.paired
                  ? pack_gate_up(ctx(), view_of(w, size), view_of(up, size), GetParam())
                  : pack_matrix(ctx(), view_of(w, size), view_of(bias, {matrix.outputs}), GetParam());
    scale_ = put(random_values(matrix.outputs, 5), {matrix.outputs});
  }

  Product product_of(TensorView x, TensorView y) const {
    return {.shape = shape_,
            .format = GetParam(),
            .weight = weight_.storage.view().data(),
            .scales = scales_of(weight_),
            .x = x.data(),
            .x_stride = x.stride(0),
            .rows = x.dim(0),
            .epilogue = {.y = y.data(), .y_stride = y.stride(0), .y_dtype = y.dtype()}};
  }
  // With every part of an epilogue.
  Product finished_product_of(TensorView x, TensorView y) const {
    Product product = product_of(x, y);
    product.epilogue.bias = weight_.bias.as<float>();
    product.epilogue.scale = scale_.as<float>();
    product.epilogue.activation = Activation::gelu;
    product.epilogue.accumulate = y.dtype() == DType::f32;
    return product;
  }

  std::vector<float> by_narrow(const Product& product, const Tensor& y) {
    EXPECT_TRUE(narrow_product(ctx(), product));
    return get(y);
  }
  std::vector<float> by_tiles(const Product& product, const Tensor& y) {
    const Workspace::Scope scope(*ctx().workspace);
    tile_product_by(ctx(), widened(ctx(), product), choose_tile(shape_, product.rows, machine_of(ctx())));
    return get(y);
  }
  // f(x, y) is the product.
  template <typename Make>
  void expect_same(TensorView x, DType y_dtype, const Make& make) {
    const auto filled = [&] {
      return put(random_values(x.dim(0) * (shape_.outputs + 3), 6), {x.dim(0), shape_.outputs + 3}, y_dtype);
    };
    const Tensor y = filled(), want = filled();
    expect_same_bits(by_narrow(make(x, y.view().columns(0, shape_.outputs)), y),
                     by_tiles(make(x, want.view().columns(0, shape_.outputs)), want));
  }

  MatrixShape shape_;
  PackedMatrix weight_;
  Tensor scale_;
};

TEST_P(NarrowProductTest, HasTheBitsOfTheTileKernels) {
  for (const MatrixShape& shape : kShapes) {
    use(shape);
    const Tensor x = put(random_values(192 * shape.depth, 1), {192, shape.depth}, GetParam().operand);
    for (const int64_t rows : {9, 16, 17, 33, 64, 65, 128, 192}) {
      SCOPED_TRACE(testing::Message() << rows << " rows of " << shape.outputs << " x " << shape.depth);
      if (narrow_plan(shape, form_of(GetParam()), rows, false, machine_of(ctx())).warps == 0) continue;
      const TensorView some = x.view().slice(0, rows);
      for (const DType y_dtype : {DType::f32, GetParam().operand}) {
        expect_same(some, y_dtype, [&](TensorView in, TensorView y) { return product_of(in, y); });
        if (shape.paired || shape.outputs > 4096) continue;
        expect_same(some, y_dtype, [&](TensorView in, TensorView y) { return finished_product_of(in, y); });
      }
    }
  }
}

TEST_P(NarrowProductTest, HasTheSumsOfSegmentsOfTheKernelsOf16Bits) {
  for (const MatrixShape& shape : {MatrixShape{1024, 1, 2048}, {1024, 1, 3072}, {2560, 1, 9728}}) {
    use(shape);
    const bool is_large = segments_shape(shape, 64, machine_of(ctx())).has_value();
    for (const int64_t rows : {17, 32, 64, 150}) {
      if (is_large && rows > 64) continue;
      SCOPED_TRACE(testing::Message() << rows << " rows of " << shape.outputs << " x " << shape.depth);
      const Tensor x = put(random_values(rows * shape.depth, 1), {rows, shape.depth}, GetParam().operand);
      const Tensor y = garbage({rows, shape.outputs}), sums = garbage({kSegments, rows, shape.outputs}),
                   want = garbage({kSegments, rows, shape.outputs});
      const Product product = product_of(x, y);
      EXPECT_TRUE(narrow_segments(ctx(), product, sums));
      const Workspace::Scope scope(*ctx().workspace);
      if (is_large)
        wide_segments(ctx(), widened(ctx(), product), want);
      else
        EXPECT_TRUE(partial_product(ctx(), widened(ctx(), product), want));
      expect_same_bits(get(sums), get(want));
    }
  }
}

// Three products in a recorded step, one after the other, whose rows change between its replays.
TEST_P(NarrowProductTest, ReplaysReadTheCurrentContentsOfMemory) {
  use({1024, 1, 1024});
  ctx().graphs = &graphs();
  const auto random_rows = [&](uint64_t seed) {
    return put(random_values(40 * 1024, seed), {40, 1024}, GetParam().operand);
  };
  const Tensor x = random_rows(1), y = garbage({40, 1024}), want = garbage({40, 1024});
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    const Tensor other = random_rows(seed % 2);
    copy(other, x);
    run_step(ctx(), {.owner = this, .rows = 40}, [&] {
      for (int i = 0; i < 3; ++i) EXPECT_TRUE(narrow_product(ctx(), product_of(x, y)));
    });
    expect_same_bits(get(y), by_tiles(product_of(other, want), want));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Formats, NarrowProductTest,
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
