// Products whose rows stay in shared memory give the bits of those whose rows pass through it.
#include "ops/cuda/product_testing.h"
#include "ops/cuda/resident_product.h"
#include "ops/cuda/testing.h"
#include "ops/cuda/tile_product.h"
#include "ops/cuda/wide_product.h"
#include "ops/linear.h"
#include "ops/step_graph.h"
#include "ops/transfer.h"

namespace shoal::ops::cuda {
namespace {

// Two, four and six rows of tiles to a block on GPUs of about 130 multiprocessors; a last block that is not
// full; segments of two tiles to eight.
const MatrixShape kShapes[] = {
    {4096, 1, 1024}, {2048, 1, 1024},       {1024, 1, 1024},       {4097, 1, 1024},      {6004, 1, 1024},
    {9, 1, 512},     {3072, 1, 1024, true}, {3050, 1, 1024, true}, {300, 1, 2048, true}, {40, 1, 512, true}};

class ResidentProduct : public CudaTest, public testing::WithParamInterface<DType> {
 protected:
  static DType dtype() { return GetParam(); }

  void SetUp() override {
    CudaTest::SetUp();
    if (!IsSkipped() && !has_wide_kernels(ctx())) GTEST_SKIP() << "no kernels for this GPU";
  }

  void use(const MatrixShape& matrix) {
    shape_ = matrix;
    std::vector<float> w = random_values(matrix.outputs * matrix.depth, 2, 0.3f), up = w;
    std::ranges::reverse(up);
    const Shape size{matrix.outputs, matrix.depth};
    std::vector<float> bias = random_values(matrix.outputs, 3);
    weight_ = matrix.paired ? pack_gate_up(ctx(), view_of(w, size), view_of(up, size), dtype())
                            : pack_matrix(ctx(), view_of(w, size), view_of(bias, {matrix.outputs}), dtype());
    scale_ = put(random_values(matrix.outputs, 5), {matrix.outputs});
  }

  // What `multiply` makes of y, in rows that lie apart: so far that four outputs are stored at once, or not.
  template <typename Multiply>
  std::vector<float> result(int64_t rows, Multiply multiply) {
    const int64_t stride = apart_ ? (shape_.outputs + 11) / 8 * 8 : shape_.outputs + 5;
    const Tensor y = put(random_values(rows * stride, 6), {rows, stride}, y_dtype_);
    multiply(y.view().columns(0, shape_.outputs));
    return get(y);
  }
  // With every part of an epilogue, but of a pair, which has none.
  Product product_of(TensorView x, TensorView y) const {
    Product product{.shape = shape_,
                    .dtype = dtype(),
                    .weight = weight_.storage.view().data(),
                    .x = x.data(),
                    .x_stride = x.stride(0),
                    .rows = y.dim(0),
                    .taps = {},
                    .epilogue = {.y = y.data(), .y_stride = y.stride(0), .y_dtype = y_dtype_}};
    if (shape_.paired) return product;
    product.epilogue.bias = weight_.bias.as<float>();
    product.epilogue.scale = scale_.as<float>();
    product.epilogue.activation = Activation::gelu;
    product.epilogue.accumulate = y_dtype_ == DType::f32;
    return product;
  }
  std::vector<float> by_tiles(TensorView x) {
    return result(x.dim(0), [&](TensorView y) {
      tile_product_by(ctx(), product_of(x, y), choose_tile(shape_, x.dim(0), tile_machine(ctx())));
    });
  }
  std::vector<float> resident(TensorView x) {
    return result(x.dim(0), [&](TensorView y) { EXPECT_TRUE(resident_product(ctx(), product_of(x, y))); });
  }

  MatrixShape shape_;
  bool apart_ = false;  // by a multiple of eight outputs
  DType y_dtype_ = DType::f32;
  PackedMatrix weight_;
  Tensor scale_;
};

TEST(ResidentPlan, ThereIsOneOnlyWhereSegmentsAreEvenAndAllFindsRoom) {
  const TileMachine machine{132, 227 << 10};
  const auto has_plan = [&](const MatrixShape& shape, int64_t rows) {
    return resident_plan(shape, rows, machine).tile_rows > 0;
  };
  EXPECT_TRUE(has_plan({4096, 1, 1024}, 64));
  EXPECT_FALSE(has_plan({4096, 1, 1024}, 16));
  EXPECT_FALSE(has_plan({4096, 1, 1024}, 65));
  EXPECT_FALSE(has_plan({4096, 1, 1000}, 64));
  EXPECT_FALSE(has_plan({4096, 1, 992}, 64));
  EXPECT_FALSE(has_plan({4096, 1, 768}, 64));  // segments of three tiles
  EXPECT_FALSE(has_plan({4096, 2, 1024}, 64));
  EXPECT_FALSE(has_plan({8192, 1, 1024}, 64));  // more blocks than run at once
  EXPECT_FALSE(has_plan({1024, 1, 2048}, 64));
  EXPECT_TRUE(has_plan({1024, 1, 2048}, 17));
}

TEST_P(ResidentProduct, HasTheBitsOfTheTileKernels) {
  int done = 0;
  for (const MatrixShape& shape : kShapes) {
    use(shape);
    const Tensor x = put(random_values(64 * shape.depth, 1), {64, shape.depth}, dtype());
    for (const int64_t rows : {17, 24, 32, 33, 63, 64}) {
      SCOPED_TRACE(testing::Message() << rows << " rows of " << shape.outputs << " x " << shape.depth
                                      << (shape.paired ? ", paired" : ""));
      if (resident_plan(shape, rows, tile_machine(ctx())).tile_rows == 0) continue;
      const TensorView some = x.view().slice(0, rows);
      for (const bool apart : {false, true})
        for (const DType y_dtype : {DType::f32, dtype()}) {
          apart_ = apart, y_dtype_ = y_dtype;
          expect_same_bits(resident(some), by_tiles(some));
          ++done;
        }
    }
  }
  EXPECT_GT(done, 100);
}

TEST_P(ResidentProduct, StepsReplayOnOtherContents) {
  ctx().graphs = &graphs();
  use({1024, 1, 1024});
  ASSERT_GT(resident_plan(shape_, 40, tile_machine(ctx())).tile_rows, 0);
  const Tensor x = put(random_values(40 * 1024, 1), {40, 1024}, dtype());
  const Tensor y = put(std::vector<float>(40 * 1024), {40, 1024});
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    const Tensor other = put(random_values(40 * 1024, seed % 2), {40, 1024}, dtype());
    const Tensor want = put(std::vector<float>(40 * 1024), {40, 1024});
    copy(other, x);
    fill_zero(ctx(), y);
    run_step(ctx(), {.owner = this, .rows = 40}, [&] {
      for (int i = 0; i < 3; ++i) resident_product(ctx(), product_of(x, y));
    });
    for (int i = 0; i < 3; ++i)
      tile_product_by(ctx(), product_of(other, want), choose_tile(shape_, 40, tile_machine(ctx())));
    expect_same_bits(get(y), get(want));
  }
}

INSTANTIATE_TEST_SUITE_P(HalfFloats, ResidentProduct, testing::Values(DType::bf16, DType::f16),
                         [](const auto& tested) { return std::string(name_of(tested.param)); });

}  // namespace
}  // namespace shoal::ops::cuda
