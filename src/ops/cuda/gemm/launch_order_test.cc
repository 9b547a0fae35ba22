// What a GPU alone has: the next kernel starts before the last one has ended.
#include "ops/cuda/device/cuda_testing.h"
#include "ops/linear.h"
#include "ops/matrix_testing.h"
#include "ops/transfer.h"

namespace shoal::ops::cuda {
namespace {

class LaunchOrder : public CudaTest, public testing::WithParamInterface<MatrixFormat> {};

// With or without a pause between products that depend on each other, the results are the same.
TEST_P(LaunchOrder, DependentProductsWaitForEachOther) {
  const int64_t depth = 512;
  const Shape shape{depth, depth};
  std::vector<float> gate = random_values(depth * depth, 1, 0.05f),
                     up = random_values(depth * depth, 2, 0.05f),
                     down = random_values(depth * depth, 3, 0.05f);
  const PackedMatrix pair = pack_gate_up(ctx(), view_of(gate, shape), view_of(up, shape), GetParam()),
                     back = pack_matrix(ctx(), view_of(down, shape), {}, GetParam());
  const Tensor weight = put(std::vector<float>(static_cast<size_t>(depth), 1.0f), {depth});
  for (const int64_t rows : {1, 16, 40}) {
    const std::vector<float> start = random_values(rows * depth, 4);
    std::vector<float> results[2];
    for (const bool pauses : {false, true}) {
      const Tensor x = put(start, {rows, depth});
      const Tensor hidden = put(start, {rows, depth}, GetParam().operand);
      for (int layer = 0; layer < 50; ++layer) {
        norm_swiglu(ctx(), x, {weight, 1e-5f}, pair, hidden);
        if (pauses) synchronize(ctx());
        linear(ctx(), hidden, back, x, {.accumulate = true});
        if (pauses) synchronize(ctx());
      }
      results[pauses] = get(x);
    }
    expect_same_bits(results[0], results[1]);
  }
}

INSTANTIATE_TEST_SUITE_P(Gpu, LaunchOrder,
                         testing::Values(DType::f32, DType::bf16, DType::f16,
                                         MatrixFormat{DType::i8, DType::bf16},
                                         MatrixFormat{DType::u4, DType::bf16, kUsualGroup}),
                         [](const auto& tested) { return std::string(name_of(tested.param.weights)); });

}  // namespace
}  // namespace shoal::ops::cuda
