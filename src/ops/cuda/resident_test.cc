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
    norm_weight_ = put(random_values(matrix.depth, 5), {matrix.depth});
  }
  RmsNorm norm() const { return {norm_weight_, 1e-5f}; }

  // What `multiply` makes of y, in rows that lie apart: so far that four outputs are stored at once, or not.
  template <typename Multiply>
  std::vector<float> result(int64_t rows, Multiply multiply) {
    const int64_t stride = apart_ ? (shape_.outputs + 11) / 8 * 8 : shape_.outputs + 5;
    const Tensor y = put(random_values(rows * stride, 6), {rows, stride}, y_dtype_);
    multiply(y.view().columns(0, shape_.outputs));
    return get(y);
  }
  Product product_of(TensorView y) const {
    Product product{.shape = shape_,
                    .dtype = dtype(),
                    .weight = weight_.storage.view().data(),
                    .rows = y.dim(0),
                    .taps = {},
                    .epilogue = {.y = y.data(), .y_stride = y.stride(0), .y_dtype = y_dtype_}};
    if (!shape_.paired) product.epilogue.bias = weight_.bias.as<float>();
    return product;
  }
  std::vector<float> in_turn(TensorView x) {
    Workspace::Scope scope(*ctx().workspace);
    const RmsNorm norm_of_x = norm();
    const TensorView normed = product_operand(ctx(), x, dtype(), &norm_of_x);
    return result(x.dim(0), [&](TensorView y) {
      Product product = product_of(y);
      product.x = normed.data(), product.x_stride = normed.stride(0);
      tile_product_by(ctx(), product, choose_tile(shape_, product.rows, tile_machine(ctx())));
    });
  }
  std::vector<float> resident(TensorView x) {
    return result(x.dim(0),
                  [&](TensorView y) { EXPECT_TRUE(resident_product(ctx(), product_of(y), x, norm())); });
  }

  MatrixShape shape_;
  bool apart_ = false;  // by a multiple of eight outputs
  DType y_dtype_ = DType::f32;
  PackedMatrix weight_;
  Tensor norm_weight_;
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
  EXPECT_FALSE(has_plan({4096, 2, 1024}, 64));
  EXPECT_FALSE(has_plan({8192, 1, 1024}, 64));  // more blocks than run at once
  EXPECT_FALSE(has_plan({1024, 1, 2048}, 64));
  EXPECT_TRUE(has_plan({1024, 1, 2048}, 17));
  const auto is_split = [&](const MatrixShape& shape, int64_t rows) {
    return split_plan(shape, rows, machine).tile_rows > 0;
  };
  EXPECT_TRUE(is_split({1024, 1, 3072}, 64));
  EXPECT_FALSE(is_split({1024, 1, 3072}, 16));
  EXPECT_FALSE(is_split({1024, 1, 3072}, 65));
  EXPECT_FALSE(is_split({1024, 1, 3064}, 64));
  EXPECT_FALSE(is_split({1024, 1, 3072, true}, 64));
  EXPECT_FALSE(is_split({4096, 1, 3072}, 64));
  EXPECT_FALSE(is_split({1024, 1, 4096}, 64));  // two blocks would not fit
}

TEST_P(ResidentProduct, IsTheNormAndThePlainProduct) {
  int done = 0;
  for (const MatrixShape& shape : kShapes) {
    use(shape);
    const Tensor x = put(random_values(64 * shape.depth, 1, 3.0f), {64, shape.depth});
    for (const int64_t rows : {17, 24, 32, 33, 63, 64}) {
      SCOPED_TRACE(testing::Message() << rows << " rows of " << shape.outputs << " x " << shape.depth
                                      << (shape.paired ? ", paired" : ""));
      if (resident_plan(shape, rows, tile_machine(ctx())).tile_rows == 0) continue;
      const TensorView some = x.view().slice(0, rows);
      for (const bool apart : {false, true})
        for (const DType y_dtype : {DType::f32, dtype()}) {
          apart_ = apart, y_dtype_ = y_dtype;
          expect_same_bits(resident(some), in_turn(some));
          ++done;
        }
    }
  }
  EXPECT_GT(done, 100);
}

TEST_P(ResidentProduct, SplitAmongTheBlocksOfAClusterItIsThePlainProduct) {
  int done = 0;
  for (const MatrixShape& shape : std::vector<MatrixShape>{{1024, 1, 1024},
                                                           {1024, 1, 2048},
                                                           {1024, 1, 3072},
                                                           {2048, 1, 1024},
                                                           {768, 1, 768},
                                                           {100, 1, 256},
                                                           {1, 1, 512}}) {
    use(shape);
    const Tensor x = put(random_values(64 * shape.depth, 1), {64, shape.depth}, dtype());
    const Tensor scale = put(random_values(shape.outputs, 4), {shape.outputs});
    for (const int64_t rows : {17, 24, 32, 33, 63, 64}) {
      SCOPED_TRACE(testing::Message() << rows << " rows of " << shape.outputs << " x " << shape.depth);
      const auto by = [&](auto multiply) {
        return result(rows, [&](TensorView y) {
          const ProductEpilogue epilogue{.bias = weight_.bias.as<float>(),
                                         .scale = scale.as<float>(),
                                         .activation = Activation::gelu,
                                         .accumulate = true,
                                         .y = y.data(),
                                         .y_stride = y.stride(0)};
          multiply(Product{.shape = shape,
                           .dtype = dtype(),
                           .weight = weight_.storage.view().data(),
                           .x = x.view().data(),
                           .x_stride = shape.depth,
                           .rows = rows,
                           .taps = {},
                           .epilogue = epilogue});
        });
      };
      if (split_plan(shape, rows, tile_machine(ctx())).tile_rows == 0) continue;
      for (const bool apart : {false, true}) {
        apart_ = apart;
        const std::vector<float> want = by([&](const Product& product) {
          tile_product_by(ctx(), product, choose_tile(shape, rows, tile_machine(ctx())));
        });
        expect_same_bits(by([&](const Product& product) { EXPECT_TRUE(split_product(ctx(), product)); }),
                         want);
        ++done;
      }
    }
  }
  EXPECT_GT(done, 50);
}

TEST_P(ResidentProduct, StepsReplayOnOtherContents) {
  ctx().graphs = &graphs();
  use({1024, 1, 1024});
  ASSERT_GT(resident_plan(shape_, 40, tile_machine(ctx())).tile_rows, 0);
  const Tensor x = put(random_values(40 * 1024, 1), {40, 1024}),
               y = put(random_values(40 * 1024, 2), {40, 1024});
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    const Tensor other = put(random_values(40 * 1024, seed % 2), {40, 1024});
    copy(other, x);
    run_step(ctx(), {.owner = this, .rows = 40}, [&] {
      for (int i = 0; i < 3; ++i) norm_linear(ctx(), x, norm(), weight_, y);
    });
    const std::vector<float> got = get(y);
    Workspace::Scope scope(*ctx().workspace);
    const RmsNorm norm_of_x = norm();
    Product product = product_of(y);
    const TensorView normed = product_operand(ctx(), other, dtype(), &norm_of_x);
    product.x = normed.data(), product.x_stride = 1024;
    tile_product_by(ctx(), product, choose_tile(shape_, 40, tile_machine(ctx())));
    expect_same_bits(got, get(y));
  }
}

INSTANTIATE_TEST_SUITE_P(HalfFloats, ResidentProduct, testing::Values(DType::bf16, DType::f16),
                         [](const auto& tested) { return std::string(name_of(tested.param)); });

}  // namespace
}  // namespace shoal::ops::cuda
