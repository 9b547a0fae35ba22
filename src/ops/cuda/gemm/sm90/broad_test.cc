// Products whose blocks all run at once have the bits of the others.
#include "ops/cuda/gemm/sm90/broad_product.h"
#include "ops/cuda/gemm/sm90/product_bits_testing.h"

namespace shoal::ops::cuda {
namespace {

const Machine kH200{132, 227 << 10};

// Both kernels, by the number of rows; a last block that is not full.
const MatrixShape kShapes[] = {{4096, 1, 1024},       {2048, 1, 1024},       {1024, 1, 1024},
                               {1000, 1, 1024},       {8, 1, 1024},          {4128, 1, 1024},
                               {3072, 1, 1024, true}, {3064, 1, 1024, true}, {8, 1, 1024, true}};

class BroadProduct : public ProductBits {};

TEST(BroadPlan, AllBlocksFitAndRunAtOnce) {
  const auto outputs = [&](const MatrixShape& shape, int64_t rows) {
    const BroadPlan plan = broad_plan(shape, rows, kH200);
    if (plan.outputs == 0) return 0;
    EXPECT_LE(plan.bytes, kH200.shared_bytes);
    EXPECT_LE((rows + kBroadRows - 1) / kBroadRows *
                  ((shape.tile_rows() * kTileOutputs + plan.outputs - 1) / plan.outputs),
              kH200.multiprocessors);
    return plan.outputs;
  };
  EXPECT_EQ(outputs({4096, 1, 1024}, 64), 0);
  EXPECT_EQ(outputs({4096, 1, 1024}, 65), 64);
  EXPECT_EQ(outputs({4096, 1, 1024}, 256), 64);
  EXPECT_EQ(outputs({4096, 1, 1024}, 257), 96);
  EXPECT_EQ(outputs({4096, 1, 1024}, 512), 0);  // more blocks than run at once
  EXPECT_EQ(outputs({2048, 1, 1024}, 512), 64);
  EXPECT_EQ(outputs({3072, 1, 1024, true}, 128), 64);
  EXPECT_EQ(outputs({3072, 1, 1024, true}, 256), 96);
  EXPECT_EQ(outputs({4096, 1, 512}, 128), 0);
  EXPECT_EQ(outputs({4096, 1, 2048}, 128), 0);
  EXPECT_EQ(outputs({4096, 2, 1024}, 128), 0);
}

TEST_P(BroadProduct, HasTheBitsOfTheTileKernels) {
  apart_ = true;
  int done = 0;
  for (const MatrixShape& shape : kShapes) {
    use(shape);
    const Tensor x = put(random_values(512 * shape.depth, 1), {512, shape.depth}, dtype());
    for (const int64_t rows : {65, 127, 128, 129, 200, 256, 300, 512}) {
      SCOPED_TRACE(testing::Message() << rows << " rows of " << shape.outputs << " x " << shape.depth
                                      << (shape.paired ? ", paired" : ""));
      if (broad_plan(shape, rows, machine_of(ctx())).outputs == 0) continue;
      const TensorView some = x.view().slice(0, rows);
      for (const auto& [y_dtype, overwrites] :
           {std::pair(DType::f32, false), {dtype(), false}, {DType::f32, true}}) {
        y_dtype_ = y_dtype, overwrites_ = overwrites;
        expect_same_bits(by(broad_product, some), by_tiles(some));
        ++done;
      }
    }
  }
  EXPECT_GT(done, 120);
}

TEST_P(BroadProduct, RefusesEpiloguesThatAreNotPlain) {
  use({1024, 1, 1024});
  const Tensor x = put(random_values(128 * 1024, 1), {128, 1024}, dtype());
  const Tensor y = put(std::vector<float>(128 * 1029), {128, 1029});
  EXPECT_FALSE(broad_product(ctx(), product_of(x, y.view().columns(0, 1024))));
}

TEST_P(BroadProduct, ReplaysReadTheCurrentContentsOfMemory) {
  use({2048, 1, 1024});
  expect_replays(broad_product, 200);
}

INSTANTIATE_TEST_SUITE_P(HalfFloats, BroadProduct, testing::Values(DType::bf16, DType::f16),
                         [](const auto& tested) { return std::string(name_of(tested.param)); });

}  // namespace
}  // namespace shoal::ops::cuda
