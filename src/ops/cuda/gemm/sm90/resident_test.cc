// Products whose rows stay in shared memory give the bits of those whose rows pass through it.
#include "ops/cuda/gemm/sm90/product_bits_testing.h"
#include "ops/cuda/gemm/sm90/resident_product.h"

namespace shoal::ops::cuda {
namespace {

// Two, four and six rows of tiles to a block on GPUs of about 130 multiprocessors; a last block that is not
// full; segments of two tiles to eight.
const MatrixShape kShapes[] = {
    {4096, 1, 1024}, {2048, 1, 1024},       {1024, 1, 1024},       {4097, 1, 1024},      {6004, 1, 1024},
    {9, 1, 512},     {3072, 1, 1024, true}, {3050, 1, 1024, true}, {300, 1, 2048, true}, {40, 1, 512, true}};

class ResidentProduct : public ProductBits {};

TEST(ResidentPlan, NeedsEvenSegmentsAndRoomForTheWholeMatrix) {
  const Machine machine{132, 227 << 10};
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
  activation_ = Activation::gelu;
  for (const MatrixShape& shape : kShapes) {
    use(shape);
    const Tensor x = put(random_values(64 * shape.depth, 1), {64, shape.depth}, dtype());
    for (const int64_t rows : {17, 24, 32, 33, 63, 64}) {
      SCOPED_TRACE(testing::Message() << rows << " rows of " << shape.outputs << " x " << shape.depth
                                      << (shape.paired ? ", paired" : ""));
      if (resident_plan(shape, rows, machine_of(ctx())).tile_rows == 0) continue;
      const TensorView some = x.view().slice(0, rows);
      for (const bool apart : {false, true})
        for (const DType y_dtype : {DType::f32, dtype()}) {
          apart_ = apart, y_dtype_ = y_dtype;
          expect_same_bits(by(resident_product, some), by_tiles(some));
          ++done;
        }
    }
  }
  EXPECT_GT(done, 100);
}

TEST_P(ResidentProduct, ReplaysReadTheCurrentContentsOfMemory) {
  use({1024, 1, 1024});
  expect_replays(resident_product, 40);
}

INSTANTIATE_TEST_SUITE_P(HalfFloats, ResidentProduct, testing::Values(DType::bf16, DType::f16),
                         [](const auto& tested) { return std::string(name_of(tested.param)); });

}  // namespace
}  // namespace shoal::ops::cuda
