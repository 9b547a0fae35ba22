#include "ops/attention.h"

#include <cmath>
#include <cstring>
#include <numeric>

#include "ops/vector_testing.h"

namespace shoal::ops {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Sequences with all their q, k and v rows; computes any pieces of them in any batches.
struct World {
  HeadLayout layout;
  DType dtype;
  std::vector<std::vector<float>> qkv;  // per sequence: [length, qkv_width]
  std::vector<std::vector<float>> out;  // per sequence: [length, heads * head_dim]

  World(HeadLayout heads, DType cache, const std::vector<int64_t>& lengths) : layout(heads), dtype(cache) {
    for (const int64_t length : lengths) {
      qkv.push_back(random_values(length * layout.qkv_width(), static_cast<unsigned>(length + 1)));
      out.emplace_back(static_cast<size_t>(length * layout.heads * layout.head_dim));
    }
  }
  int64_t length(size_t s) const { return static_cast<int64_t>(qkv[s].size()) / layout.qkv_width(); }
};

// Pages of a world: shuffled over the pool, or in order; slots that are never written hold NaN.
class Pages {
 public:
  Pages(const World& world, int64_t page_size, bool shuffled) : page_size_(page_size) {
    int64_t longest = 0;
    for (size_t s = 0; s < world.qkv.size(); ++s) longest = std::max(longest, world.length(s));
    per_sequence_ = (longest + page_size - 1) / page_size;
    const int64_t count = per_sequence_ * static_cast<int64_t>(world.qkv.size());
    for (Tensor* t : {&k_, &v_}) {
      *t = Tensor(world.dtype, {count, world.layout.kv_heads, page_size, world.layout.head_dim});
      if (world.dtype == DType::bf16)
        std::ranges::fill(t->span<Bf16>(), float_to_bf16(kNan));
      else
        std::ranges::fill(t->span<float>(), kNan);
    }
    table_.resize(static_cast<size_t>(count));
    std::iota(table_.begin(), table_.end(), 0);
    if (shuffled) std::shuffle(table_.begin(), table_.end(), std::mt19937(5));
  }
  KvLayer layer() const { return {k_, v_}; }
  std::span<int32_t> table(size_t sequence) {
    return std::span(table_).subspan(sequence * static_cast<size_t>(per_sequence_),
                                     static_cast<size_t>(per_sequence_));
  }
  int64_t page_size() const { return page_size_; }
  int64_t per_sequence() const { return per_sequence_; }

 private:
  int64_t page_size_, per_sequence_ = 0;
  Tensor k_, v_;
  std::vector<int32_t> table_;
};

struct Piece {
  size_t sequence;
  int64_t begin, end;  // positions
};

// Appends the pieces' rows and attends, as one batch.
void step(Context& ctx, World& world, Pages& pages, const std::vector<Piece>& pieces, int64_t window) {
  const int64_t width = world.layout.qkv_width(), out_width = world.layout.heads * world.layout.head_dim;
  std::vector<float> qkv;
  std::vector<int32_t> offsets = {0}, positions, table;
  for (const Piece& piece : pieces) {
    const std::vector<float>& from = world.qkv[piece.sequence];
    qkv.insert(qkv.end(), from.begin() + piece.begin * width, from.begin() + piece.end * width);
    for (int64_t p = piece.begin; p < piece.end; ++p) positions.push_back(static_cast<int32_t>(p));
    offsets.push_back(static_cast<int32_t>(positions.size()));
    const std::span<int32_t> own = pages.table(piece.sequence);
    table.insert(table.end(), own.begin(), own.end());
  }
  const int64_t rows = static_cast<int64_t>(positions.size());
  std::vector<float> out(static_cast<size_t>(rows * out_width));
  const BatchPlan plan{{offsets}, positions, table, pages.per_sequence(), pages.page_size()};
  append_kv(ctx, view_of(qkv, {rows, width}), world.layout, plan, pages.layer());
  paged_attention(ctx, view_of(qkv, {rows, width}), world.layout, plan, pages.layer(), window,
                  view_of(out, {rows, out_width}));
  for (size_t i = 0; i < pieces.size(); ++i)
    std::copy(out.begin() + offsets[i] * out_width, out.begin() + offsets[i + 1] * out_width,
              world.out[pieces[i].sequence].begin() + pieces[i].begin * out_width);
}

// Every sequence on its own, in one piece.
void run_alone(Context& ctx, World& world, int64_t page_size, int64_t window) {
  Pages pages(world, page_size, false);
  for (size_t s = 0; s < world.qkv.size(); ++s) step(ctx, world, pages, {{s, 0, world.length(s)}}, window);
}

void expect_oracle(const World& world, size_t s, int64_t position, int64_t window) {
  const HeadLayout& layout = world.layout;
  const int64_t dim = layout.head_dim, width = layout.qkv_width();
  const int64_t first = window == 0 ? 0 : std::max<int64_t>(0, position - window + 1);
  const ref::Values all = wide(world.qkv[s]), stored = rounded(world.qkv[s], world.dtype);
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
    // A score errs by (dim + 2) roundings of its magnitude, a weight by twice that (its own and the
    // maximum's), so the mean of the values by as much of the largest value; then the chains over one chunk
    // of keys, the lanes of their sum and four roundings per merge.
    const double chunks = static_cast<double>((position - first) / kAttentionChunk + 2);
    const double relative =
        2 * static_cast<double>(dim + 4) * ref::score_magnitude(q, keys) + kAttentionChunk + 16 + 8 * chunks;
    const ref::Values bound(want.size(), 2 * kUnit * relative * largest + 1e-37);
    const auto at = world.out[s].begin() + (position * layout.heads + head) * dim;
    expect_close({at, at + dim}, want, bound);
  }
}

class AttentionTest : public testing::TestWithParam<MatrixCase>, protected MatrixFixture {
 protected:
  void SetUp() override {
    if (GetParam().isa > best_cpu_isa()) GTEST_SKIP() << "this CPU has no " << name_of(GetParam().isa);
    set_cpu_isa(GetParam().isa);
  }
};

TEST_P(AttentionTest, MatchesTheOracleAtAwkwardSizes) {
  for (const HeadLayout& layout :
       {HeadLayout{2, 1, 6}, {3, 3, 16}, {8, 2, 20}, {4, 2, 64}, {2, 1, 128}, {40, 1, 8}})
    for (const int64_t window : {0, 1, 17, 128, 200}) {
      World world(layout, GetParam().dtype, {1, 35, 290});
      run_alone(ctx_, world, 32, window);
      for (const int64_t position : {0, 1, 15, 16, 34}) expect_oracle(world, 1, position, window);
      for (const int64_t position : {127, 128, 129, 250, 289}) expect_oracle(world, 2, position, window);
      expect_oracle(world, 0, 0, window);
    }
}

TEST_P(AttentionTest, ARowIsTheSameInAnyBatchChunkingAndPaging) {
  for (const HeadLayout& layout : {HeadLayout{4, 2, 32}, {3, 3, 20}})
    for (const int64_t window : {0, 60, 128}) {
      World alone(layout, GetParam().dtype, {1, 7, 130, 300, 0});
      run_alone(ctx_, alone, 16, window);

      World ragged = alone;
      for (std::vector<float>& out : ragged.out) std::ranges::fill(out, kNan);
      Pages scattered(ragged, 5, true);
      step(ctx_, ragged, scattered, {{2, 0, 130}, {4, 0, 0}, {0, 0, 1}, {3, 0, 300}, {1, 0, 7}}, window);

      World chunked = ragged;
      for (std::vector<float>& out : chunked.out) std::ranges::fill(out, kNan);
      Pages large(chunked, 128, true);
      // Two sequences grow at different paces; the last pieces are single rows, as in decoding.
      step(ctx_, chunked, large, {{3, 0, 1}, {2, 0, 100}}, window);
      step(ctx_, chunked, large, {{3, 1, 129}, {2, 100, 101}, {0, 0, 1}}, window);
      step(ctx_, chunked, large, {{2, 101, 129}, {3, 129, 298}, {1, 0, 7}}, window);
      step(ctx_, chunked, large, {{3, 298, 299}, {2, 129, 130}}, window);
      step(ctx_, chunked, large, {{3, 299, 300}}, window);

      for (size_t s = 0; s < alone.out.size(); ++s) {
        expect_same_bits(ragged.out[s], alone.out[s]);
        expect_same_bits(chunked.out[s], alone.out[s]);
      }
    }
}

TEST_P(AttentionTest, EveryInstructionSetGivesTheBitsOfThePortableKernel) {
  for (const HeadLayout& layout : {HeadLayout{4, 2, 64}, {6, 2, 20}, {16, 1, 128}}) {
    World fast(layout, GetParam().dtype, {3, 200}), plain = fast;
    run_alone(ctx_, fast, 32, 0);
    set_cpu_isa(CpuIsa::portable);
    run_alone(ctx_, plain, 32, 0);
    set_cpu_isa(GetParam().isa);
    for (size_t s = 0; s < fast.out.size(); ++s) expect_same_bits(fast.out[s], plain.out[s]);
  }
}

TEST_P(AttentionTest, PagesOutsideTheWindowAreNeverLookedUp) {
  constexpr int64_t kWindow = 20;
  World world({2, 1, 16}, GetParam().dtype, {200}), whole = world;
  run_alone(ctx_, whole, 8, kWindow);
  Pages pages(world, 8, false);
  step(ctx_, world, pages, {{0, 0, 190}}, kWindow);
  std::span<int32_t> table = pages.table(0);
  for (int64_t page = 0; page < (190 - kWindow) / 8; ++page) table[static_cast<size_t>(page)] = -77;
  step(ctx_, world, pages, {{0, 190, 200}}, kWindow);
  expect_same_bits(world.out[0], whole.out[0]);
}

TEST_P(AttentionTest, TeamSizeDoesNotMatter) {
  World one({4, 2, 32}, GetParam().dtype, {700}), four = one;
  ThreadTeam single(1), several(4);
  for (auto [world, team] : {std::pair{&one, &single}, {&four, &several}}) {
    Context ctx = ctx_;
    ctx.team = team;
    Pages pages(*world, 32, true);
    step(ctx, *world, pages, {{0, 0, 699}}, 0);
    step(ctx, *world, pages, {{0, 699, 700}}, 0);
  }
  expect_same_bits(one.out[0], four.out[0]);
}

TEST_P(AttentionTest, HeadsAreNormedAndRotated) {
  const HeadLayout layout{3, 1, 10};
  constexpr int64_t kRows = 5;
  const Tensor rope = make_rope_table(50, layout.head_dim, 10'000);
  const std::vector<int32_t> positions = {0, 1, 49, 7, 7};
  std::vector<float> q_weight = random_values(10, 1), k_weight = random_values(10, 2);
  for (const bool normed : {false, true}) {
    std::vector<float> qkv = random_values(kRows * layout.qkv_width(), 3);
    const ref::Values before = wide(qkv);
    QkNorm norm;
    if (normed) norm = {view_of(q_weight, {10}), view_of(k_weight, {10}), 1e-6f};
    qk_norm_rope(ctx_, view_of(qkv, {kRows, layout.qkv_width()}), layout, norm, rope,
                 {.positions = positions});
    ref::Values want, bound;
    for (int64_t row = 0; row < kRows; ++row)
      for (int64_t head = 0; head < 5; ++head) {
        ref::Values x = slice(before, row * layout.qkv_width() + head * 10, 10);
        if (head < 4) {
          if (normed) x = ref::rms_norm(x, wide(head < 3 ? q_weight : k_weight), 1e-6f);
          const float* turns = rope.view().row<float>(positions[static_cast<size_t>(row)]);
          const ref::Values turned = ref::rotate_pairs(x, {turns, turns + 10});
          for (size_t i = 0; i < 10; ++i) bound.push_back(16 * kUnit * (std::abs(x[i]) + std::abs(x[i ^ 1])));
          x = turned;
        } else {
          bound.insert(bound.end(), 10, 1e-37);  // values pass unchanged
        }
        want.insert(want.end(), x.begin(), x.end());
      }
    expect_close(qkv, want, bound);
  }
  std::vector<float> qkv(static_cast<size_t>(layout.qkv_width()));
  for (const int32_t position : {-1, 50})
    EXPECT_THROW(qk_norm_rope(ctx_, view_of(qkv, {1, layout.qkv_width()}), layout, {}, rope,
                              {.positions = {&position, 1}}),
                 Error);
}

TEST_P(AttentionTest, AttendEqualsNormAppendAndAttentionInTurn) {
  const HeadLayout layout{4, 2, 12};
  constexpr int64_t kRows = 5, kOut = 4 * 12;
  const Tensor rope = make_rope_table(20, layout.head_dim, 10'000);
  std::vector<float> q_weight = random_values(12, 1), k_weight = random_values(12, 2);
  const QkNorm norm = {view_of(q_weight, {12}), view_of(k_weight, {12}), 1e-6f};
  // A sequence in its second page, one without rows, and one that starts.
  const std::vector<int32_t> offsets = {0, 2, 2, 5}, positions = {5, 6, 0, 1, 2}, table = {4, 1, 2, 3, 0, 5};
  const BatchPlan plan{{offsets}, positions, table, 2, 4};
  for (const int64_t window : {0, 2}) {
    std::vector<float> qkv = random_values(kRows * layout.qkv_width(), 3), turned = qkv;
    std::vector<float> out(kRows * kOut, kNan), want = out;
    const Shape shape = {6, layout.kv_heads, 4, layout.head_dim};
    std::vector<Tensor> caches;
    for (int i = 0; i < 4; ++i) caches.push_back(Tensor::zeros(GetParam().dtype, shape));
    attend(ctx_, view_of(qkv, {kRows, layout.qkv_width()}), {layout, rope, window}, norm, plan,
           {caches[0], caches[1]}, view_of(out, {kRows, kOut}));
    const TensorView rows = view_of(turned, {kRows, layout.qkv_width()});
    qk_norm_rope(ctx_, rows, layout, norm, rope, plan);
    append_kv(ctx_, rows, layout, plan, {caches[2], caches[3]});
    paged_attention(ctx_, rows, layout, plan, {caches[2], caches[3]}, window, view_of(want, {kRows, kOut}));
    expect_same_bits(out, want);
    for (size_t side : {0u, 1u})
      EXPECT_EQ(std::memcmp(caches[side].view().data(), caches[side + 2].view().data(),
                            static_cast<size_t>(caches[side].bytes())),
                0);
  }
}

TEST_P(AttentionTest, BrokenPlansAreRefused) {
  const HeadLayout layout{1, 1, 4};
  std::vector<float> qkv(24), out(8);
  Tensor cache = Tensor::zeros(GetParam().dtype, {2, 1, 4, 4});
  const std::vector<int32_t> offsets = {0, 2};
  const auto attend = [&](std::vector<int32_t> positions, std::vector<int32_t> table) {
    const BatchPlan plan{{offsets}, positions, table, 2, 4};
    paged_attention(ctx_, view_of(qkv, {2, 12}), layout, plan, {cache, cache}, 0, view_of(out, {2, 4}));
  };
  EXPECT_NO_THROW(attend({6, 7}, {0, 1}));
  EXPECT_THROW(attend({7, 8}, {0, 1}), Error);
  EXPECT_THROW(attend({-1, 0}, {0, 1}), Error);
  EXPECT_THROW(attend({6, 7}, {0, 2}), Error);
  EXPECT_THROW(attend({6, 7}, {0}), Error);
}

INSTANTIATE_TEST_SUITE_P(Isa, AttentionTest,
                         testing::Values(MatrixCase{CpuIsa::portable, DType::f32},
                                         MatrixCase{CpuIsa::avx2, DType::f32},
                                         MatrixCase{CpuIsa::avx2, DType::bf16},
                                         MatrixCase{CpuIsa::avx512, DType::f32},
                                         MatrixCase{CpuIsa::avx512, DType::bf16}),
                         name_of_case);

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
