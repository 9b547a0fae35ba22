#include "ops/attention_testing.h"
#include "ops/product_testing.h"

namespace shoal::ops {
namespace {

using attention_testing::make_world;
using attention_testing::Piece;
using attention_testing::Pool;
using attention_testing::World;

class AttentionTest : public attention_testing::AttentionTestOf<ProductTest> {
 protected:
  // A row's head errs by so many units of 2^-24 of the largest value that it sees. q, keys: of that head.
  static double units_of(const ref::Values& q, const ref::Values& keys) {
    const auto dim = static_cast<int64_t>(q.size()), count = std::ssize(keys) / dim;
    const double magnitude = ref::score_magnitude(q, keys);
    if (!on_gpu()) {
      // A score errs by (dim + 2) roundings of its magnitude, a weight by twice that (its own and the
      // maximum's), so the mean of the values by as much of the largest value; then the chains over one chunk
      // of keys, the lanes of their sum and four roundings per merge.
      const double chunks = static_cast<double>((count - 1) / kAttentionChunk + 2);
      return 2 * (2 * static_cast<double>(dim + 4) * magnitude + kAttentionChunk + 16 + 8 * chunks);
    }
    // Tensor cores may drop bits below 2^-22 of the largest term of a sum; a score then errs by that per 8
    // terms and its scaling (dim + 8 covers chains of fma too), a weight by twice that (its own and the
    // maximum's), by its exponential (2 units of 2^-22) and, in tensor form, by one rounding; the mean of the
    // values by twice a weight's error of the largest value. Then sums of a chunk, and four roundings per
    // merge. Weights below the smallest normal f16 err by 2^-25 each.
    const bool tensor = has_tensor_form(dim);
    const double step = tensor ? 0x1p-22 : 2 * kUnit, chunks = static_cast<double>((count - 1) / 32 + 2);
    const double weight =
        2 * static_cast<double>(dim + 8) * step * magnitude + 0x1p-21 + (tensor ? 2 * unit_of(dtype()) : 0);
    const double small = dtype() == DType::f16 ? 0x1p-25 * static_cast<double>(count) : 0;
    return (2 * (weight + small) + (64 + 8 * chunks) * step) / kUnit;
  }
  // Whether a GPU rounds q, too.
  static bool has_tensor_form(int64_t dim) {
    return on_gpu() && dtype() != DType::f32 && (dim == 32 || dim == 64 || dim == 128);
  }

  static void expect_oracle(const World& world, size_t s, int64_t position) {
    const HeadLayout& layout = world.layout;
    const int64_t dim = layout.head_dim, width = layout.qkv_width();
    const int64_t first = world.window == 0 ? 0 : std::max<int64_t>(0, position - world.window + 1);
    const std::vector<float>& rows = world.qkv[s];
    const ref::Values row = wide(rows_between(rows, width, position, position + 1)),
                      seen = narrow(rows_between(rows, width, first, position + 1));
    const std::vector<float> got = world.result(s, position);
    for (int64_t head = 0; head < layout.heads; ++head) {
      const int64_t kv = head / (layout.heads / layout.kv_heads);
      ref::Values keys, values;
      double largest = 0;
      for (int64_t p = 0; p <= position - first; ++p)
        for (int64_t d = 0; d < dim; ++d) {
          const auto key = static_cast<size_t>(p * width + (layout.heads + kv) * dim + d);
          keys.push_back(seen[key]);
          values.push_back(seen[key + static_cast<size_t>(layout.kv_heads * dim)]);
          largest = std::max(largest, std::abs(values.back()));
        }
      const ref::Values q = has_tensor_form(dim) ? slice(seen, (position - first) * width + head * dim, dim)
                                                 : slice(row, head * dim, dim);
      const ref::Values want = ref::attention(q, keys, values);
      const ref::Values bound(want.size(), units_of(q, keys) * kUnit * largest + 1e-37);
      expect_close({got.begin() + head * dim, got.begin() + (head + 1) * dim}, want, bound);
    }
  }
  // Every sequence on its own over scattered pages, its rows as they are.
  void run_shuffled(World& world, int64_t page_size) {
    Pool pool = make_pool(world, page_size, true);
    for (size_t s = 0; s < world.qkv.size(); ++s) run(world, pool, {{s, 0, world.length(s)}}, Way::plain);
  }

  static std::vector<float> rows_between(const std::vector<float>& rows, int64_t width, int64_t begin,
                                         int64_t end) {
    return {rows.begin() + begin * width, rows.begin() + end * width};
  }
};

TEST_P(AttentionTest, MatchesTheOracleAtAwkwardSizes) {
  for (const HeadLayout& layout : {HeadLayout{2, 1, 6},
                                   {3, 3, 16},
                                   {3, 3, 20},
                                   {8, 2, 20},
                                   {8, 2, 32},
                                   {2, 2, 64},
                                   {4, 2, 64},
                                   {6, 2, 64},
                                   {2, 1, 128},
                                   {8, 1, 128},
                                   {20, 1, 32},
                                   {40, 1, 8},
                                   {1, 1, 200}})
    for (const int64_t window : {0, 1, 17, 128, 200}) {
      if (layout.heads * layout.head_dim > 512 && !on_gpu()) continue;  // CPUs take head by head
      SCOPED_TRACE(testing::Message() << layout.heads << '/' << layout.kv_heads << " x " << layout.head_dim
                                      << ", window " << window);
      World world = make_world({layout, dtype(), window}, {1, 35, 290});
      run_shuffled(world, 16);
      expect_oracle(world, 0, 0);
      for (const int64_t position : {0, 1, 15, 16, 34}) expect_oracle(world, 1, position);
      for (const int64_t position : {63, 64, 65, 127, 128, 129, 149, 250, 289})
        expect_oracle(world, 2, position);
    }
}

TEST_P(AttentionTest, MatchesTheOracleOverLongContexts) {
  const HeadLayout layout = on_gpu() ? HeadLayout{4, 2, 128} : HeadLayout{2, 1, 64};
  for (const int64_t window : {0, 512}) {
    World world = make_world({layout, dtype(), window}, {1000});
    run_shuffled(world, 32);
    for (const int64_t position : {300, 511, 512, 575, 999}) expect_oracle(world, 0, position);
  }
}

TEST_P(AttentionTest, HeadsAreNormedAndRotated) {
  for (const int64_t dim : {4, 10, 32, 64, 128, 200}) {
    const HeadLayout layout{3, 1, dim};
    const Tensor table = make_rope_table(50, dim, 10'000);
    const Tensor rope = resident(ctx(), make_rope_table(50, dim, 10'000));
    std::vector<int32_t> positions = {0, 1, 49, 7, 7};
    if (on_gpu()) positions.push_back(-1);  // padding
    const std::vector<int32_t> offsets = {0, static_cast<int32_t>(positions.size())};
    const int64_t rows = std::ssize(positions), width = layout.qkv_width();
    const std::vector<float> weights[] = {random_values(dim, 1), random_values(dim, 2)};
    const Tensor q_weight = put(weights[0], {dim}), k_weight = put(weights[1], {dim});
    const Workspace::Scope scope(*ctx().workspace);
    const BatchPlan plan = on_device(ctx(), {{offsets}, positions, {}, 0, 1});
    for (const bool normed : {false, true}) {
      const std::vector<float> before = random_values(rows * width, 3);
      const Tensor qkv = put(before, {rows, width});
      QkNorm norm;
      if (normed) norm = {q_weight, k_weight, 1e-6f};
      qk_norm_rope(ctx(), qkv, layout, norm, rope, plan);
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
            // Half the sum's roundings reach the norm's factor (on a GPU, whose chains are longer); then the
            // factor, the weight and the rotation.
            const double units = 16 + (on_gpu() ? static_cast<double>(dim) / 32 : 0);
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

TEST_P(AttentionTest, AppendedRowsStandInTheirSlotsAndNothingElseChanges) {
  for (const int64_t dim : {4, 64}) {
    World world = make_world({{2, 2, dim}, dtype()}, {9});
    Pool pool(world, 4, true);
    const std::vector<float> old = random_values(pool.shape(world.layout).elements(), 8);
    pool.k = put(old, pool.shape(world.layout), dtype());
    pool.v = put(old, pool.shape(world.layout), dtype());
    const Step step = make_step(world, pool, {Piece::padding(), {0, 3, 7}});
    const Workspace::Scope scope(*ctx().workspace);
    const BatchPlan plan = on_device(ctx(), step.plan(pool));
    const Tensor qkv = put(step.qkv, {step.rows(), world.layout.qkv_width()});
    append_kv(ctx(), qkv, world.layout, plan, pool.layer());
    std::vector<float> k = rounded_to(old, dtype()), v = k;
    const std::vector<float> rows = rounded_to(world.qkv[0], dtype());
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

TEST_P(AttentionTest, BrokenPlansAreRefused) {
  const HeadLayout layout{1, 1, 4};
  const Tensor qkv = garbage({2, 12}), out = garbage({2, 4}), k = garbage({2, 1, 4, 4}, dtype()),
               v = garbage({2, 1, 4, 4}, dtype());
  const std::vector<int32_t> offsets = {0, 2};
  const auto attend = [&](std::vector<int32_t> positions, std::vector<int32_t> table) {
    const Workspace::Scope scope(*ctx().workspace);
    const BatchPlan plan = on_device(ctx(), {{offsets}, positions, table, 2, 4});
    paged_attention(ctx(), qkv, layout, plan, {k, v}, 0, out);
    synchronize(ctx());
  };
  EXPECT_NO_THROW(attend({6, 7}, {0, 1}));
  EXPECT_THROW(attend({6, 7}, {0}), Error);
  EXPECT_THROW(attend({6}, {0, 1}), Error);
  if (on_gpu()) return;  // whose positions and pages the host does not read
  EXPECT_THROW(attend({7, 8}, {0, 1}), Error);
  EXPECT_THROW(attend({-1, 0}, {0, 1}), Error);
  EXPECT_THROW(attend({6, 7}, {0, 2}), Error);
}

INSTANTIATE_TEST_SUITE_P(Machine, AttentionTest, testing::ValuesIn(products_on(every_machine())),
                         name_of_product);

class AttentionOnCpus : public AttentionTest {};

TEST_P(AttentionOnCpus, EveryInstructionSetGivesTheBitsOfThePortableKernel) {
  for (const HeadLayout& layout : {HeadLayout{4, 2, 64}, {6, 2, 20}, {16, 1, 128}}) {
    World fast = make_world({layout, dtype()}, {3, 200}), plain = fast;
    run_alone(fast, 32, Way::plain);
    set_cpu_isa(CpuIsa::portable);
    run_alone(plain, 32, Way::plain);
    set_cpu_isa(*GetParam().machine.isa);
    expect_same_results(fast, plain);
  }
}

TEST_P(AttentionOnCpus, TeamSizeDoesNotMatter) {
  World one = make_world({{4, 2, 32}, dtype()}, {700}), four = one;
  ThreadTeam single(1), several(4);
  for (auto [world, team] : {std::pair{&one, &single}, {&four, &several}}) {
    ctx().team = team;
    Pool pool = make_pool(*world, 32, true);
    run(*world, pool, {{0, 0, 699}}, Way::plain);
    run(*world, pool, {{0, 699, 700}}, Way::plain);
  }
  expect_same_results(one, four);
}

TEST_P(AttentionOnCpus, PositionsOutsideTheTableOfTurnsAreRefused) {
  const HeadLayout layout{3, 1, 10};
  const Tensor rope = make_rope_table(50, layout.head_dim, 10'000), qkv = garbage({1, layout.qkv_width()});
  for (const int32_t position : {-1, 50})
    EXPECT_THROW(qk_norm_rope(ctx(), qkv, layout, {}, rope, {.positions = {&position, 1}}), Error);
}

INSTANTIATE_TEST_SUITE_P(Cpu, AttentionOnCpus, testing::ValuesIn(products_on(every_cpu())), name_of_product);

TEST(RopeTable, IsTheRoundedTableOfTheCheckpoints) {
  const Tensor table = make_rope_table(300, 8, 1'000'000);
  ASSERT_EQ(table.shape(), (Shape{300, 4, 2}));
  for (int64_t position = 0; position < 300; ++position)
    for (int64_t j = 0; j < 4; ++j) {
      const long double theta = std::pow(1e6L, -2.0L * static_cast<long double>(j) / 8);
      const float* got = table.view().row<float>(position) + 2 * j;
      // theta and the angle are rounded to f32: 3 units of the angle; then bf16 keeps 8 bits: 2^-8
      const double angle = static_cast<double>(static_cast<long double>(position) * theta);
      EXPECT_NEAR(got[0], std::cos(angle), 0x1p-8 * std::abs(std::cos(angle)) + 4 * kUnit * angle);
      EXPECT_NEAR(got[1], std::sin(angle), 0x1p-8 * std::abs(std::sin(angle)) + 4 * kUnit * angle);
      for (int i = 0; i < 2; ++i) EXPECT_EQ(got[i], round_to_bf16(got[i]));
    }
  EXPECT_EQ(table.as<float>()[0], 1.0f);
  // position 1, j = 0: cos 1 and sin 1 to 8 bits
  EXPECT_EQ(table.view().row<float>(1)[0], 0.5390625f);
  EXPECT_EQ(table.view().row<float>(1)[1], 0.83984375f);
}

}  // namespace
}  // namespace shoal::ops
