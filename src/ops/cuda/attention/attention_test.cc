// Attention on CUDA against its definition in double.
#include "ops/attention.h"

#include <cmath>

#include "ops/cuda/attention/attention_testing.h"

namespace shoal::ops::cuda {
namespace {

constexpr DType kCacheTypes[] = {DType::f32, DType::bf16, DType::f16};

// Half an ulp relative to its value.
double unit_of(DType dtype) {
  return dtype == DType::f32 ? 0x1p-24 : dtype == DType::bf16 ? 0x1p-8 : 0x1p-11;
}

class AttentionOracleTest : public AttentionTest {
 protected:
  static ref::Values wide_as(const std::vector<float>& values, DType dtype) {
    return wide(rounded_to(values, dtype));
  }

  // Appends all rows as they are (no norm, no rotation) and attends.
  void run_plain(World& world, int64_t page_size) {
    Pool pool = make_pool(world, page_size, true);
    for (size_t s = 0; s < world.qkv.size(); ++s) {
      const Step step = make_step(world, pool, {{s, 0, world.length(s)}});
      const Workspace::Scope scope(*ctx().workspace);
      const BatchPlan plan = on_device(ctx(), step.plan(pool));
      const Tensor qkv = put(step.qkv, {step.rows(), world.layout.qkv_width()});
      const Tensor out = put(world.out[s], {step.rows(), world.out_width()});
      ops::append_kv(ctx(), qkv, world.layout, plan, pool.layer());
      ops::paged_attention(ctx(), qkv, world.layout, plan, pool.layer(), world.window, out);
      world.out[s] = get(out);
    }
  }

  static void expect_oracle(const World& world, size_t s, int64_t position) {
    const HeadLayout& layout = world.layout;
    const int64_t dim = layout.head_dim, width = layout.qkv_width();
    const int64_t first = world.window == 0 ? 0 : std::max<int64_t>(0, position - world.window + 1);
    const bool tensor = world.dtype != DType::f32 && (dim == 32 || dim == 64 || dim == 128);
    const ref::Values stored = wide_as(world.qkv[s], world.dtype);
    const ref::Values all = tensor ? stored : wide(world.qkv[s]);
    for (int64_t head = 0; head < layout.heads; ++head) {
      const int64_t kv = head / (layout.heads / layout.kv_heads);
      ref::Values keys, values;
      double largest = 0;
      for (int64_t p = first; p <= position; ++p)
        for (int64_t d = 0; d < dim; ++d) {
          keys.push_back(stored[static_cast<size_t>(p * width + (layout.heads + kv) * dim + d)]);
          values.push_back(
              stored[static_cast<size_t>(p * width + (layout.heads + layout.kv_heads + kv) * dim + d)]);
          largest = std::max(largest, std::abs(values.back()));
        }
      const ref::Values q = slice(all, position * width + head * dim, dim);
      const ref::Values want = ref::attention(q, keys, values);
      // Tensor cores may drop bits below 2^-22 of the largest term of a sum; a score then errs by that per 8
      // terms and its scaling (dim + 8 covers chains of fma too), a weight by twice that (its own and the
      // maximum's), by its exponential (2 units of 2^-22) and, in tensor form, by one rounding; the mean of
      // the values by twice a weight's error of the largest value. Then sums of a chunk, and four roundings
      // per merge. Weights below the smallest normal f16 err by 2^-25 each.
      const double step = tensor ? 0x1p-22 : 2 * kUnit;
      const double chunks = static_cast<double>((position - first) / 32 + 2);
      const double weight = 2 * static_cast<double>(dim + 8) * step * ref::score_magnitude(q, keys) +
                            0x1p-21 + (tensor ? unit_of(world.dtype) : 0);
      const double small =
          world.dtype == DType::f16 ? 0x1p-25 * static_cast<double>(position - first + 1) : 0;
      const double relative = 2 * (weight + small) + (64 + 8 * chunks) * step;
      const ref::Values bound(want.size(), relative * largest + 1e-37);
      const std::vector<float> row = world.result(s, position);
      expect_close({row.begin() + head * dim, row.begin() + (head + 1) * dim}, want, bound);
    }
  }
};

TEST_F(AttentionOracleTest, MatchesTheOracleAtAwkwardSizes) {
  for (const DType dtype : kCacheTypes)
    for (const HeadLayout& layout : {HeadLayout{2, 1, 6},
                                     {3, 3, 20},
                                     {8, 2, 32},
                                     {2, 2, 64},
                                     {6, 2, 64},
                                     {2, 1, 128},
                                     {8, 1, 128},
                                     {20, 1, 32},
                                     {1, 1, 200}})
      for (const int64_t window : {0, 1, 17, 128}) {
        World world = make_world({layout, dtype, window}, {1, 35, 150});
        run_plain(world, 16);
        expect_oracle(world, 0, 0);
        for (const int64_t position : {0, 1, 15, 16, 34}) expect_oracle(world, 1, position);
        for (const int64_t position : {63, 64, 65, 127, 128, 149}) expect_oracle(world, 2, position);
      }
}

TEST_F(AttentionOracleTest, MatchesTheOracleOverLongContexts) {
  for (const DType dtype : kCacheTypes)
    for (const int64_t window : {0, 512}) {
      World world = make_world({{4, 2, 128}, dtype, window}, {1000});
      run_plain(world, 32);
      for (const int64_t position : {300, 511, 512, 575, 999}) expect_oracle(world, 0, position);
    }
}

TEST_F(AttentionOracleTest, HeadsAreNormedAndRotated) {
  for (const int64_t dim : {4, 10, 32, 64, 128, 200}) {
    const HeadLayout layout{3, 1, dim};
    const Tensor table = make_rope_table(50, dim, 10'000);
    const Tensor rope = resident(ctx(), make_rope_table(50, dim, 10'000));
    const std::vector<int32_t> positions = {0, 1, 49, -1, 7, 7};
    const std::vector<int32_t> offsets = {0, 6};
    const int64_t rows = 6, width = layout.qkv_width();
    const std::vector<float> weights[] = {random_values(dim, 1), random_values(dim, 2)};
    const Tensor q_weight = put(weights[0], {dim}), k_weight = put(weights[1], {dim});
    const Workspace::Scope scope(*ctx().workspace);
    const BatchPlan plan = on_device(ctx(), {{offsets}, positions, {}, 0, 1});
    for (const bool normed : {false, true}) {
      const std::vector<float> before = random_values(rows * width, 3);
      const Tensor qkv = put(before, {rows, width});
      QkNorm norm;
      if (normed) norm = {q_weight, k_weight, 1e-6f};
      ops::qk_norm_rope(ctx(), qkv, layout, norm, rope, plan);
      ref::Values want, bound;
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t head = 0; head < 5; ++head) {
          ref::Values x = slice(wide(before), row * width + head * dim, dim);
          const int32_t position = positions[static_cast<size_t>(row)];
          if (head == 4 || position < 0) {  // values and padding pass unchanged
            bound.insert(bound.end(), x.size(), 1e-37);
          } else {
            if (normed) x = ref::rms_norm(x, wide(weights[head < 3 ? 0 : 1]), 1e-6f);
            const float* turns = table.view().row<float>(position);
            const ref::Values turned = ref::rotate_pairs(x, {turns, turns + dim});
            // Half the sum's roundings reach the norm's factor; then the factor, the weight and the rotation.
            const double units = 16 + static_cast<double>(dim) / 32;
            for (size_t i = 0; i < x.size(); ++i)
              bound.push_back(units * kUnit * (std::abs(x[i]) + std::abs(x[i ^ 1])) + 1e-37);
            x = turned;
          }
          want.insert(want.end(), x.begin(), x.end());
        }
      expect_close(get(qkv), want, bound);
    }
  }
}

TEST_F(AttentionOracleTest, AppendedRowsStandInTheirSlotsAndNothingElseChanges) {
  for (const DType dtype : kCacheTypes)
    for (const int64_t dim : {4, 64}) {
      World world = make_world({{2, 2, dim}, dtype}, {9});
      Pool pool = make_pool(world, 4, true);
      const std::vector<float> old = random_values(pool.shape(world.layout).elements(), 8);
      pool.k = put(old, pool.shape(world.layout), dtype);
      pool.v = put(old, pool.shape(world.layout), dtype);
      const Step step = make_step(world, pool, {Piece::padding(), {0, 3, 7}});
      const Workspace::Scope scope(*ctx().workspace);
      const BatchPlan plan = on_device(ctx(), step.plan(pool));
      const Tensor qkv = put(step.qkv, {step.rows(), world.layout.qkv_width()});
      ops::append_kv(ctx(), qkv, world.layout, plan, pool.layer());
      std::vector<float> k = rounded_to(old, dtype), v = k;
      const std::vector<float> rows = rounded_to(world.qkv[0], dtype);
      for (int64_t p = 3; p < 7; ++p)
        for (int64_t head = 0; head < 2; ++head)
          for (int64_t d = 0; d < dim; ++d) {
            const int64_t page = pool.table[static_cast<size_t>(p / 4)];
            const auto slot = static_cast<size_t>(((page * 2 + head) * 4 + p % 4) * dim + d);
            k[slot] = rows[static_cast<size_t>(p * 6 * dim + (2 + head) * dim + d)];
            v[slot] = rows[static_cast<size_t>(p * 6 * dim + (4 + head) * dim + d)];
          }
      EXPECT_EQ(get(pool.k), k);
      EXPECT_EQ(get(pool.v), v);
    }
}

}  // namespace
}  // namespace shoal::ops::cuda
