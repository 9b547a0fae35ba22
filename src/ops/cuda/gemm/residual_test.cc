// Residual streams whose sums wait have the bits of those to which products are added at once.
#include "ops/residual.h"

#include "ops/cuda/gemm/sm90/partial_product.h"
#include "ops/cuda/gemm/sm90/wide_kernels_testing.h"
#include "ops/cuda/gemm/sm90/wide_product.h"
#include "ops/product_testing.h"
#include "ops/step_graph.h"
#include "ops/transfer.h"

namespace shoal::ops::cuda {
namespace {

constexpr float kEps = 1e-5f;

class ResidualStream : public WideKernelsTest {
 protected:
  PackedMatrix matrix(int64_t outputs, int64_t depth, unsigned seed, bool with_bias = false) {
    std::vector<float> w = random_values(outputs * depth, seed, 0.1f),
                       bias = random_values(outputs, seed + 1);
    return pack_matrix(ctx(), view_of(w, {outputs, depth}),
                       with_bias ? view_of(bias, {outputs}) : TensorView(), dtype());
  }
  PackedMatrix pair(int64_t outputs, int64_t depth) {
    std::vector<float> gate = random_values(outputs * depth, 11, 0.1f), up = gate;
    std::ranges::reverse(up);
    return pack_gate_up(ctx(), view_of(gate, {outputs, depth}), view_of(up, {outputs, depth}), dtype());
  }
};

TEST(PartialPlan, NeedsSegmentsOfTilePairsAnd17To256Rows) {
  const Machine machine{132, 227 << 10};
  const auto plan = [&](const MatrixShape& shape, int64_t rows) {
    return partial_plan(shape, rows, machine);
  };
  EXPECT_EQ(plan({1024, 1, 2048}, 16).row_groups, 0);
  EXPECT_EQ(plan({1024, 1, 2048}, 17).row_groups, 1);
  EXPECT_EQ(plan({1024, 1, 2048}, 65).row_groups, 2);
  EXPECT_EQ(plan({1024, 1, 2048}, 128).tile_rows, 8);
  EXPECT_EQ(plan({1024, 1, 3072}, 256).tile_rows, 16);
  EXPECT_EQ(plan({1024, 1, 3072}, 257).row_groups, 0);
  EXPECT_EQ(plan({1024, 1, 2304}, 64).row_groups, 0);   // segments of nine tiles
  EXPECT_EQ(plan({1024, 1, 4096}, 256).row_groups, 0);  // no room
  EXPECT_EQ(plan({1000, 1, 2048}, 64).row_groups, 0);
  EXPECT_EQ(plan({1024, 2, 2048}, 64).row_groups, 0);
  EXPECT_EQ(plan({1024, 1, 2048, true}, 64).row_groups, 0);
}

TEST_P(ResidualStream, HasTheBitsOfAddingAtOnce) {
  for (const int64_t dim : {512, 1024, 1536}) {
    const PackedMatrix out = matrix(dim, 2048, 2), down = matrix(dim, 512, 4), head = matrix(264, dim, 6);
    const PackedMatrix gate_up = pair(512, dim);
    const Tensor norm_weight = put(random_values(dim, 8), {dim});
    const RmsNorm norm{norm_weight, kEps};
    for (const int64_t rows : {1, 16, 17, 24, 33, 64, 65, 100, 128, 129, 200, 256, 257, 300, 384, 385}) {
      SCOPED_TRACE(testing::Message() << rows << " rows of " << dim);
      const Workspace::Scope scope(*ctx().workspace);
      const Tensor heads = put(random_values(rows * 2048, 1), {rows, 2048}, dtype());
      const Tensor x = put(random_values(rows * dim, 3), {rows, dim}),
                   at_once = put(random_values(rows * dim, 3), {rows, dim});
      const Tensor inner = put(std::vector<float>(static_cast<size_t>(rows * 512)), {rows, 512}, dtype());
      const Tensor wanted_inner =
          put(std::vector<float>(static_cast<size_t>(rows * 512)), {rows, 512}, dtype());
      const Tensor y = put(std::vector<float>(static_cast<size_t>(rows * 264)), {rows, 264});
      const Tensor wanted = put(std::vector<float>(static_cast<size_t>(rows * 264)), {rows, 264});

      Residual stream(ctx(), x, dtype());
      add_linear(ctx(), heads, out, stream);
      // 12 blocks of 1,536 outputs by two of 192 rows and eight segments do not all run at once.
      EXPECT_EQ(stream.pending, rows > 16 && rows <= (dim > 1024 ? 256 : 384));
      norm_swiglu(ctx(), stream, norm, gate_up, inner);
      EXPECT_FALSE(stream.pending);
      add_linear(ctx(), inner, down, stream);
      norm_linear(ctx(), stream, norm, head, y);
      add_linear(ctx(), heads, out, stream);
      add_linear(ctx(), inner, down, stream);  // what waits is added first
      settled(ctx(), stream);

      linear(ctx(), heads, out, at_once, {.accumulate = true});
      norm_swiglu(ctx(), at_once, norm, gate_up, wanted_inner);
      linear(ctx(), wanted_inner, down, at_once, {.accumulate = true});
      norm_linear(ctx(), at_once, norm, head, wanted);
      linear(ctx(), heads, out, at_once, {.accumulate = true});
      linear(ctx(), wanted_inner, down, at_once, {.accumulate = true});

      expect_same_bits(get(inner), get(wanted_inner));
      expect_same_bits(get(y), get(wanted));
      expect_same_bits(get(x), get(at_once));
    }
  }
}

TEST_P(ResidualStream, TheMostInputsThatFitHaveTheBitsOfAddingAtOnce) {
  const PackedMatrix out = matrix(1024, 3072, 2);
  for (const int64_t rows : {17, 64, 128, 200, 256, 320, 384}) {
    const Workspace::Scope scope(*ctx().workspace);
    const Tensor in = put(random_values(rows * 3072, 1), {rows, 3072}, dtype());
    const Tensor x = put(random_values(rows * 1024, 3), {rows, 1024}),
                 at_once = put(random_values(rows * 1024, 3), {rows, 1024});
    Residual stream(ctx(), x, dtype());
    add_linear(ctx(), in, out, stream);
    EXPECT_TRUE(stream.pending);
    linear(ctx(), in, out, at_once, {.accumulate = true});
    expect_same_bits(get(settled(ctx(), stream)), get(at_once));
  }
}

TEST(WideSegments, AreOfLargeMatricesUpTo256RowsAndOfOthersFrom257) {
  const Machine machine{132, 227 << 10, true};
  const auto has = [&](const MatrixShape& matrix, int64_t rows) {
    return segments_shape(matrix, rows, machine).has_value();
  };
  const MatrixShape down{2560, 1, 9728};
  EXPECT_FALSE(has(down, 8));
  EXPECT_TRUE(has(down, 9));
  EXPECT_TRUE(has(down, 256));
  EXPECT_FALSE(has(down, 257));
  EXPECT_TRUE(has({2560, 1, 4096}, 64));
  EXPECT_FALSE(segments_shape({2560, 1, 4096}, 64, {132, 227 << 10}));
  EXPECT_FALSE(has({2560, 1, 4064}, 64));  // a segment of 15 tiles
  EXPECT_FALSE(has({2564, 1, 4096}, 64));
  for (const MatrixShape& small : {MatrixShape{1024, 1, 3072}, MatrixShape{1024, 1, 2048}}) {  // S1-mini's
    EXPECT_FALSE(has(small, 256));
    EXPECT_TRUE(has(small, 257));
    EXPECT_TRUE(has(small, 384));
    EXPECT_FALSE(has(small, 385));
    EXPECT_FALSE(segments_shape(small, 300, {68, 227 << 10, true}));  // two rounds of blocks
  }
  EXPECT_FALSE(has({1536, 1, 2048}, 300));
}

TEST_P(ResidualStream, LargeMatricesHaveTheBitsOfAddingAtOnce) {
  for (const auto& [outputs, depth] : {std::pair<int64_t, int64_t>{2560, 4096}, {712, 9728}}) {
    const PackedMatrix weight = matrix(outputs, depth, 2);
    const Tensor norm_weight = put(random_values(outputs, 8), {outputs});
    const RmsNorm norm{norm_weight, kEps};
    const PackedMatrix head = matrix(24, outputs, 6);
    for (const int64_t rows : {8, 9, 16, 17, 64, 65, 66, 67, 200, 257}) {
      SCOPED_TRACE(testing::Message() << rows << " rows of " << outputs << " x " << depth);
      const Workspace::Scope scope(*ctx().workspace);
      const Tensor in = put(random_values(rows * depth, 1), {rows, depth}, dtype());
      const Tensor x = put(random_values(rows * outputs, 3), {rows, outputs}),
                   at_once = put(random_values(rows * outputs, 3), {rows, outputs});
      const Tensor y = put(random_values(rows * 24, 4), {rows, 24}),
                   want = put(random_values(rows * 24, 5), {rows, 24});
      Residual stream(ctx(), x, dtype());
      add_linear(ctx(), in, weight, stream);
      EXPECT_EQ(stream.pending, 9 <= rows && rows <= 256);
      norm_linear(ctx(), stream, norm, head, y);
      linear(ctx(), in, weight, at_once, {.accumulate = true});
      norm_linear(ctx(), at_once, norm, head, want);
      expect_same_bits(get(y), get(want));
      expect_same_bits(get(x), get(at_once));
    }
  }
}

TEST_P(ResidualStream, UnevenSegmentsAndBiasesAreAddedAtOnce) {
  const int64_t rows = 40;
  const PackedMatrix with_bias = matrix(1024, 1024, 2, true), odd = matrix(1024, 1000, 4);
  const Tensor x = put(random_values(rows * 1024, 3), {rows, 1024}),
               at_once = put(random_values(rows * 1024, 3), {rows, 1024});
  const Tensor in = put(random_values(rows * 1024, 1), {rows, 1024}, dtype());
  const Workspace::Scope scope(*ctx().workspace);
  Residual stream(ctx(), x, dtype());
  add_linear(ctx(), in, with_bias, stream);
  EXPECT_FALSE(stream.pending);
  add_linear(ctx(), in.view().columns(0, 1000), odd, stream);
  EXPECT_FALSE(stream.pending);
  linear(ctx(), in, with_bias, at_once, {.accumulate = true});
  linear(ctx(), in.view().columns(0, 1000), odd, at_once, {.accumulate = true});
  expect_same_bits(get(x), get(at_once));
}

// 2,560: two blocks settle a row.
TEST_P(ResidualStream, ReplaysReadTheCurrentContentsOfMemory) {
  ctx().graphs = &graphs();
  constexpr int64_t kRows = 40;
  for (const int64_t dim : {1024, 2560}) {
    SCOPED_TRACE(testing::Message() << dim << " wide");
    const PackedMatrix out = matrix(dim, dim, 2), head = matrix(dim, dim, 4);
    const Tensor norm_weight = put(random_values(dim, 8), {dim});
    const RmsNorm norm{norm_weight, kEps};
    const Tensor in = put(random_values(kRows * dim, 1), {kRows, dim}, dtype());
    const Tensor x = put(random_values(kRows * dim, 1), {kRows, dim});
    const Tensor y = put(random_values(kRows * dim, 1), {kRows, dim});
    for (unsigned seed = 1; seed <= 6; ++seed) {
      const Tensor before = put(random_values(kRows * dim, seed % 2), {kRows, dim});
      copy(before, x);
      run_step(ctx(), {.owner = this, .step = dim, .rows = kRows}, [&] {
        const Workspace::Scope scope(*ctx().workspace);
        Residual stream(ctx(), x, dtype());
        for (int i = 0; i < 3; ++i) {
          add_linear(ctx(), in, out, stream);
          norm_linear(ctx(), stream, norm, head, y);
        }
      });
      const std::vector<float> got = get(y);
      for (int i = 0; i < 3; ++i) linear(ctx(), in, out, before, {.accumulate = true});
      norm_linear(ctx(), before, norm, head, y);
      expect_same_bits(got, get(y));
      expect_same_bits(get(x), get(before));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(HalfFloats, ResidualStream, testing::Values(DType::bf16, DType::f16),
                         [](const auto& tested) { return std::string(name_of(tested.param)); });

}  // namespace
}  // namespace shoal::ops::cuda
