// Indices outside a table: CPUs refuse them, a GPU reads the nearest row.
#include <limits>

#include "ops/cuda/device/cuda_testing.h"
#include "ops/embedding.h"
#include "ops/matrix_testing.h"
#include "ops/norm.h"

namespace shoal::ops::cuda {
namespace {

using LookUpTest = CudaTest;

TEST_F(LookUpTest, ATableIndexOutsideUsesTheNearestWeights) {
  constexpr int64_t kEntries = 3;
  for (const int64_t dim : {30, 512}) {
    const Tensor x = put(random_values(3 * dim, 1, 2), {3, dim}), y = garbage({3, dim});
    const Tensor table = put(random_values(kEntries * 2 * dim, 2), {kEntries, 2 * dim});
    const TensorView weights = table.view().columns(0, dim), biases = table.view().columns(dim, 2 * dim);
    const auto normed = [&](const std::vector<int32_t>& which) {
      layer_norm_by_row(ctx(), x, put(which, {3}), weights, biases, 1e-6f, y);
      return get(y);
    };
    const std::vector<float> got = normed({-1, 1, kEntries});
    expect_same_bits(got, normed({0, 1, kEntries - 1}));
  }
}

TEST_F(LookUpTest, IdsOutsideATableReadTheNearestRow) {
  const std::vector<float> values = random_values(4 * 3, 1);
  const std::vector<int32_t> ids = {-1, 4, std::numeric_limits<int32_t>::min(),
                                    std::numeric_limits<int32_t>::max()};
  const Tensor y(DType::f32, {4, 3}, kDevice);
  gather_rows(ctx(), put(values, {4, 3}), put(ids, {4}), y);
  const std::vector<float> got = get(y);
  for (int row = 0; row < 4; ++row)
    for (int d = 0; d < 3; ++d) EXPECT_EQ(got[row * 3 + d], values[(row % 2 == 0 ? 0 : 9) + d]);
}

TEST_F(LookUpTest, CodesOutsideACodebookReadItsNearestRow) {
  const Tensor text = put(std::vector<float>{100}, {1, 1}),
               codes = put(std::vector<float>{1, 2, 3, 10, 20, 30}, {6, 1});
  const ColumnEmbedding embedding{text, codes, 3, 2, 0, 0, false};
  const Tensor y(DType::f32, {2, 1}, kDevice);
  embed_columns(ctx(), embedding, put(std::vector<int32_t>{0, -1, 7, 0, 3, -5}, {2, 3}), y);
  EXPECT_EQ(get(y), (std::vector<float>{131, 113}));
}

}  // namespace
}  // namespace shoal::ops::cuda
