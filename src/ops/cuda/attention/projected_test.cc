// norm_attend() by one product with prepared heads, against norm_linear() and attend().
#include "ops/attention_testing.h"
#include "ops/cuda/device/cuda_testing.h"
#include "ops/cuda/device/machine.h"
#include "ops/cuda_backend.h"

namespace shoal::ops::cuda {
namespace {

using attention_testing::make_world;
using attention_testing::Piece;
using attention_testing::Pool;
using attention_testing::World;

class ProjectedTest : public attention_testing::AttentionTestOf<CudaTest> {
 protected:
  static constexpr int64_t kDim = 192;

  struct Results {
    std::vector<float> out, keys, values;
  };

  // The layer's weights.
  void make_weights(const HeadLayout& layout, DType dtype, bool biased) {
    const int64_t outputs = layout.qkv_width();
    std::vector<float> weight = random_values(outputs * kDim, 81), bias = random_values(outputs, 82);
    weight_ = pack_matrix(ctx(), view_of(weight, {outputs, kDim}),
                          biased ? view_of(bias, {outputs}) : TensorView{}, dtype);
    norm_ = put(random_values(kDim, 83), {kDim});
  }

  // attend: (x, plan, pages, out).
  template <typename Attend>
  Results results_of(const World& world, const std::vector<Piece>& pieces, Attend&& attend) {
    Pool pool = make_pool(world, 16, true, 2);
    ops::fill_zero(ctx(), pool.k);
    ops::fill_zero(ctx(), pool.v);
    const Step step = make_step(world, pool, pieces);
    const Workspace::Scope scope(*ctx().workspace);
    poison();
    const BatchPlan plan = on_device(ctx(), step.plan(pool));
    std::vector<float> rows = random_values(step.rows() * kDim, 84);
    const Tensor x = put(rows, {step.rows(), kDim}), out = garbage({step.rows(), world.out_width()});
    attend(TensorView(x), plan, pool.layer(), TensorView(out));
    return {get(out), get(pool.k), get(pool.v)};
  }

  // The pieces' rows by either way.
  void compare(const World& world, const std::vector<Piece>& pieces) {
    Context& c = ctx();
    const QkNorm heads = prepare_norm(world);
    const RmsNorm norm{norm_, 1e-6f};
    const AttentionPlan attention{world.layout, rope_, world.window};
    const auto qkv_of = [&](TensorView x) {
      return c.workspace->alloc(DType::f32, {x.dim(0), world.layout.qkv_width()});
    };
    const Results apart = results_of(
        world, pieces, [&](TensorView x, const BatchPlan& plan, const KvLayer& pages, TensorView out) {
          const TensorView qkv = qkv_of(x);
          ops::norm_linear(c, x, norm, weight_, qkv);
          ops::attend(c, qkv, attention, heads, plan, pages, out);
        });
    const Results together = results_of(
        world, pieces, [&](TensorView x, const BatchPlan& plan, const KvLayer& pages, TensorView out) {
          const TensorView qkv = qkv_of(x);
          EXPECT_TRUE(has_norm_attend(c, weight_, qkv.dim(0), world.layout, plan, pages));
          norm_attend(c, x, norm, weight_, qkv, attention, heads, plan, pages, out);
        });
    const Results chosen = results_of(
        world, pieces, [&](TensorView x, const BatchPlan& plan, const KvLayer& pages, TensorView out) {
          Residual stream(c, x, weight_.format.operand);
          ops::norm_attend(c, stream, norm, weight_, attention, heads, plan, pages, out);
        });
    for (const Results& results : {together, chosen}) {
      expect_same_bits(results.keys, apart.keys);
      expect_same_bits(results.values, apart.values);
      expect_same_bits(results.out, apart.out);
      EXPECT_TRUE(std::ranges::none_of(results.out, [](float value) { return std::isnan(value); }));
    }
  }

  PackedMatrix weight_;
  Tensor norm_;
};

TEST_F(ProjectedTest, PromptsHaveTheBitsOfTheProductAndItsAttention) {
  if (!machine_of(ctx()).wgmma) GTEST_SKIP() << "no tensor cores of compute capability 9.0";
  for (const DType dtype : {DType::bf16, DType::f16})
    for (const bool normed : {true, false}) {
      const World world = make_world({{6, 2, 128}, dtype, 0, normed}, {600, 130, 300, 90, 2});
      make_weights(world.layout, dtype, /*biased=*/!normed);
      compare(world, {{0, 0, 600}});
      compare(world, {{0, 37, 590}});
      // Prompts, the end of one, sequences that speak, padding; rows that do not come out even.
      compare(world, {{1, 129, 130},
                      {0, 120, 557},
                      {2, 299, 300},
                      Piece::padding(),
                      {3, 0, 90},
                      {4, 0, 2},
                      Piece::padding()});
    }
}

TEST_F(ProjectedTest, SingleRowsOfShortSequencesGoWithTheOthers) {
  if (!machine_of(ctx()).wgmma) GTEST_SKIP() << "no tensor cores of compute capability 9.0";
  const World world = make_world({{4, 4, 128}, DType::bf16}, {224, 200, 90, 40});
  make_weights(world.layout, DType::bf16, /*biased=*/false);
  compare(world, {{0, 0, 224}, {1, 0, 200}, {2, 0, 90}, {3, 39, 40}});
}

// Where there is no such kernel, or none that gains: other heads and pages, few rows, decode steps.
TEST_F(ProjectedTest, OtherCallsAreLeftToTheProductAndAttention) {
  const auto is_taken = [&](const World& world, const std::vector<Piece>& pieces) {
    make_weights(world.layout, DType::bf16, false);
    bool taken = true;
    results_of(world, pieces, [&](TensorView x, const BatchPlan& plan, const KvLayer& pages, TensorView) {
      taken = has_norm_attend(ctx(), weight_, x.dim(0), world.layout, plan, pages);
    });
    return taken;
  };
  const World suited = make_world({{4, 2, 128}, DType::bf16}, {600});
  EXPECT_EQ(is_taken(suited, {{0, 0, 600}}), machine_of(ctx()).wgmma);
  std::vector<Piece> decode_step;
  for (size_t s = 0; s < 600; ++s) decode_step.push_back({s, 0, 1});
  EXPECT_FALSE(is_taken(make_world({{4, 2, 128}, DType::bf16}, std::vector<int64_t>(600, 1)), decode_step));
  EXPECT_FALSE(is_taken(make_world({{4, 2, 64}, DType::bf16}, {600}), {{0, 0, 600}}));
  EXPECT_FALSE(is_taken(make_world({{4, 2, 128}, DType::f32}, {600}), {{0, 0, 600}}));
  EXPECT_FALSE(is_taken(make_world({{4, 2, 128}, DType::bf16}, {600}), {{0, 0, 100}}));
}

}  // namespace
}  // namespace shoal::ops::cuda
