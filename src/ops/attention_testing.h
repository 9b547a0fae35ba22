// Shared by the tests of attention: sequences with all their rows, pages for their keys and values, and steps
// that compute any part of them in any batch.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "ops/attention.h"
#include "ops/op_testing.h"
#include "ops/transfer.h"
#include "ops/vector_testing.h"

namespace shoal::ops::attention_testing {

struct World {
  HeadLayout layout;
  DType dtype;  // of keys and values
  int64_t window = 0;
  bool normed = true;
  std::vector<std::vector<float>> qkv = {};  // per sequence: [length, qkv_width]
  std::vector<std::vector<float>> out = {};  // per sequence: [length, heads * head_dim]; NaN: not computed

  int64_t out_width() const { return layout.heads * layout.head_dim; }
  int64_t length(size_t s) const { return static_cast<int64_t>(qkv[s].size()) / layout.qkv_width(); }
  int64_t longest() const {
    int64_t most = 0;
    for (size_t s = 0; s < qkv.size(); ++s) most = std::max(most, length(s));
    return most;
  }
  void forget() {
    for (std::vector<float>& rows : out) std::ranges::fill(rows, NAN);
  }
  std::vector<float> result(size_t s, int64_t position) const {
    const auto at = out[s].begin() + position * out_width();
    return {at, at + out_width()};
  }
};

inline World make_world(World world, const std::vector<int64_t>& lengths) {
  for (const int64_t length : lengths) {
    world.qkv.push_back(random_values(length * world.layout.qkv_width(), static_cast<unsigned>(length + 1)));
    world.out.emplace_back(static_cast<size_t>(length * world.out_width()), NAN);
  }
  return world;
}

// Pages of a world: shuffled over the pool, or in order; slots that are never written hold NaN.
struct Pool {
  int64_t page_size, per_sequence;
  Tensor k, v;
  std::vector<int32_t> table;

  Pool(const World& world, int64_t tokens_per_page, bool shuffled, int64_t extra_pages = 0)
      : page_size(tokens_per_page),
        per_sequence((world.longest() + page_size - 1) / page_size + extra_pages) {
    const int64_t count = per_sequence * static_cast<int64_t>(world.qkv.size());
    table.resize(static_cast<size_t>(count));
    std::iota(table.begin(), table.end(), 0);
    if (shuffled) std::shuffle(table.begin(), table.end(), std::mt19937(5));
  }
  Shape shape(const HeadLayout& layout) const {
    return {static_cast<int64_t>(table.size()), layout.kv_heads, page_size, layout.head_dim};
  }
  KvLayer layer() const { return {k, v}; }
  std::span<int32_t> pages_of(size_t sequence) {
    return std::span(table).subspan(sequence * static_cast<size_t>(per_sequence),
                                    static_cast<size_t>(per_sequence));
  }
};

// Positions [begin, end) of a sequence; or a row of padding.
struct Piece {
  size_t sequence;
  int64_t begin, end;
  static Piece padding() { return {0, -1, 0}; }
  bool is_padding() const { return begin < 0; }
};

// Test: a fixture of OpFixture.
template <typename Test>
class AttentionTestOf : public Test {
 protected:
  // append_kv and paged_attention of rows as they are; the same after qk_norm_rope; all three at once.
  enum class Way { plain, in_turn, attend };

  Pool make_pool(const World& world, int64_t page_size, bool shuffled, int64_t extra_pages = 0) {
    Pool pool(world, page_size, shuffled, extra_pages);
    pool.k = this->garbage(pool.shape(world.layout), world.dtype);
    pool.v = this->garbage(pool.shape(world.layout), world.dtype);
    return pool;
  }

  // The step's plan, with the rows of qkv that it computes.
  struct Step {
    std::vector<Piece> pieces;
    std::vector<int32_t> offsets = {0}, positions, table;
    std::vector<float> qkv;
    int64_t rows() const { return static_cast<int64_t>(positions.size()); }
    BatchPlan plan(const Pool& pool) const {
      return {{offsets}, positions, table, pool.per_sequence, pool.page_size};
    }
  };
  // Without padding on a CPU, which has none.
  Step make_step(const World& world, Pool& pool, const std::vector<Piece>& pieces) {
    Step step;
    const int64_t width = world.layout.qkv_width();
    for (const Piece& piece : pieces) {
      if (piece.is_padding() && on_cpu(this->ctx())) continue;
      if (piece.is_padding()) {
        step.qkv.insert(step.qkv.end(), static_cast<size_t>(width), NAN);
        step.positions.push_back(-1);
        step.table.insert(step.table.end(), static_cast<size_t>(pool.per_sequence), -77);
      } else {
        const std::vector<float>& from = world.qkv[piece.sequence];
        step.qkv.insert(step.qkv.end(), from.begin() + piece.begin * width, from.begin() + piece.end * width);
        for (int64_t p = piece.begin; p < piece.end; ++p) step.positions.push_back(static_cast<int32_t>(p));
        const std::span<int32_t> own = pool.pages_of(piece.sequence);
        step.table.insert(step.table.end(), own.begin(), own.end());
      }
      step.pieces.push_back(piece);
      step.offsets.push_back(static_cast<int32_t>(step.positions.size()));
    }
    return step;
  }

  // Computes the pieces as one batch and files the results in the world; padding must give zeros.
  void run(World& world, Pool& pool, const std::vector<Piece>& pieces, Way way = Way::attend) {
    const Step step = make_step(world, pool, pieces);
    const Workspace::Scope scope(*this->ctx().workspace);
    const BatchPlan plan = on_device(this->ctx(), step.plan(pool));
    const Tensor qkv = this->put(step.qkv, {step.rows(), world.layout.qkv_width()});
    const Tensor out = this->garbage({step.rows(), world.out_width()});
    compute(world, plan, pool, qkv, out, way);
    const std::vector<float> got = this->get(out);
    for (size_t i = 0; i < step.pieces.size(); ++i) {
      const Piece& piece = step.pieces[i];
      const auto begin = got.begin() + step.offsets[i] * world.out_width(),
                 end = got.begin() + step.offsets[i + 1] * world.out_width();
      if (piece.is_padding())
        EXPECT_TRUE(std::all_of(begin, end, [](float value) { return value == 0.0f; })) << "padding";
      else
        std::copy(begin, end, world.out[piece.sequence].begin() + piece.begin * world.out_width());
    }
  }

  void compute(const World& world, const BatchPlan& plan, const Pool& pool, TensorView qkv, TensorView out,
               Way way) {
    Context& ctx = this->ctx();
    const QkNorm norm = prepare_norm(world);
    if (way == Way::attend)
      return attend(ctx, qkv, {world.layout, rope_, world.window}, norm, plan, pool.layer(), out);
    if (way == Way::in_turn) qk_norm_rope(ctx, qkv, world.layout, norm, rope_, plan);
    append_kv(ctx, qkv, world.layout, plan, pool.layer());
    paged_attention(ctx, qkv, world.layout, plan, pool.layer(), world.window, out);
  }

  // The world's norms, and turns for them.
  QkNorm prepare_norm(const World& world) {
    const int64_t dim = world.layout.head_dim;
    if (rope_.empty() || rope_.dim(1) != dim / 2) {
      rope_ = resident(this->ctx(), make_rope_table(1024, dim, 10'000));
      q_norm_ = this->put(random_values(dim, 71), {dim});
      k_norm_ = this->put(random_values(dim, 72), {dim});
    }
    return world.normed ? QkNorm{q_norm_, k_norm_, 1e-6f} : QkNorm{};
  }

  // Every sequence on its own, in one piece.
  void run_alone(World& world, int64_t page_size, Way way = Way::attend) {
    Pool pool = make_pool(world, page_size, false);
    for (size_t s = 0; s < world.qkv.size(); ++s)
      if (world.length(s) > 0) run(world, pool, {{s, 0, world.length(s)}}, way);
  }

  static void expect_same_results(const World& a, const World& b) {
    for (size_t s = 0; s < a.out.size(); ++s) {
      expect_same_bits(a.out[s], b.out[s]);
      EXPECT_TRUE(std::ranges::none_of(a.out[s], [](float value) { return std::isnan(value); }));
    }
  }

  Tensor rope_, q_norm_, k_norm_;
};

}  // namespace shoal::ops::attention_testing
