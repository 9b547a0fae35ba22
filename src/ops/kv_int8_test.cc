// Keys and values of 8 bits, on every machine: what append_kv stores, and attention over it.
#include <cmath>
#include <numeric>
#include <random>

#include "base/f16.h"
#include "ops/attention.h"
#include "ops/cpu/kernels/vector_kernels.h"
#include "ops/op_testing.h"
#include "ops/transfer.h"
#include "ops/vector_testing.h"

namespace shoal::ops {
namespace {

// Sequences with all their rows: q, k and v, and what was computed of them.
struct Int8Sequences {
  HeadLayout layout;
  int64_t window = 0;
  std::vector<std::vector<float>> qkv = {}, out = {};

  int64_t width() const { return layout.qkv_width(); }
  int64_t out_width() const { return layout.heads * layout.head_dim; }
  int64_t length(size_t s) const { return static_cast<int64_t>(qkv[s].size()) / width(); }
  void add(int64_t length, float magnitude) {
    qkv.push_back(random_values(length * width(), static_cast<unsigned>(length + 1)));
    for (float& value : qkv.back()) value *= magnitude;
    out.emplace_back(static_cast<size_t>(length * out_width()));
  }
};

struct Int8Piece {
  size_t sequence;
  int64_t begin, end;  // positions
};

// A pool of pages, each sequence's at shuffled places.
struct Int8Pool {
  int64_t page_size, per_sequence;
  Tensor k, v, k_scales, v_scales;
  std::vector<int32_t> table;

  KvLayer layer() const { return {k, v, k_scales, v_scales}; }
  std::span<const int32_t> pages_of(size_t sequence) const {
    const auto count = static_cast<size_t>(per_sequence);
    return std::span(table).subspan(sequence * count, count);
  }
};

class KvInt8 : public OpTest {
 protected:
  Int8Pool make_pool(const Int8Sequences& of, int64_t page_size, unsigned seed) {
    int64_t longest = 1;
    for (size_t s = 0; s < of.qkv.size(); ++s) longest = std::max(longest, of.length(s));
    Int8Pool pool{page_size, (longest + page_size - 1) / page_size, {}, {}, {}, {}, {}};
    pool.table.resize(of.qkv.size() * static_cast<size_t>(pool.per_sequence));
    std::iota(pool.table.begin(), pool.table.end(), 0);
    std::shuffle(pool.table.begin(), pool.table.end(), std::mt19937(seed));
    const Shape scales{static_cast<int64_t>(pool.table.size()), of.layout.kv_heads, page_size};
    const Shape integers{scales[0], scales[1], scales[2], of.layout.head_dim};
    pool.k = Tensor(DType::i8, integers, ctx().device), pool.v = Tensor(DType::i8, integers, ctx().device);
    // What is never written may be anything, and must not be seen.
    pool.k_scales = garbage(scales, DType::f16), pool.v_scales = garbage(scales, DType::f16);
    return pool;
  }

  // Appends and attends, as one batch.
  void run(Int8Sequences& world, const Int8Pool& pool, const std::vector<Int8Piece>& pieces, bool at_once) {
    std::vector<float> rows;
    std::vector<int32_t> offsets = {0}, positions, table;
    for (const Int8Piece& piece : pieces) {
      const auto from = world.qkv[piece.sequence].begin();
      rows.insert(rows.end(), from + piece.begin * world.width(), from + piece.end * world.width());
      for (int64_t p = piece.begin; p < piece.end; ++p) positions.push_back(static_cast<int32_t>(p));
      offsets.push_back(static_cast<int32_t>(positions.size()));
      const auto own = pool.pages_of(piece.sequence);
      table.insert(table.end(), own.begin(), own.end());
    }
    const Workspace::Scope scope(*ctx().workspace);
    const BatchPlan plan = on_device(ctx(), {{offsets}, positions, table, pool.per_sequence, pool.page_size});
    const auto count = static_cast<int64_t>(positions.size());
    const Tensor qkv = put(rows, {count, world.width()}), out = garbage({count, world.out_width()});
    if (at_once) {
      attend(ctx(), qkv, {world.layout, rope(world.layout), world.window}, {}, plan, pool.layer(), out);
    } else {
      append_kv(ctx(), qkv, world.layout, plan, pool.layer());
      paged_attention(ctx(), qkv, world.layout, plan, pool.layer(), world.window, out);
    }
    const std::vector<float> got = get(out);
    for (size_t i = 0; i < pieces.size(); ++i)
      std::copy(got.begin() + offsets[i] * world.out_width(),
                got.begin() + offsets[i + 1] * world.out_width(),
                world.out[pieces[i].sequence].begin() + pieces[i].begin * world.out_width());
  }

  // Turns by angle 0, so that attend computes what the other two do.
  TensorView rope(const HeadLayout& layout) {
    std::vector<float> turns;
    for (int64_t i = 0; i < 512 * layout.head_dim / 2; ++i) turns.insert(turns.end(), {1.0f, 0.0f});
    rope_ = put(turns, {512, layout.head_dim / 2, 2});
    return rope_;
  }

  // What a side of the pages holds of a sequence's kv head: [length, head_dim].
  ref::Values stored(const Int8Sequences& world, const Int8Pool& pool, size_t s, int64_t head, bool keys) {
    const std::vector<uint8_t> bytes = get_bytes(keys ? pool.k : pool.v),
                               scales = get_bytes(keys ? pool.k_scales : pool.v_scales);
    ref::Values values;
    for (int64_t p = 0; p < world.length(s); ++p) {
      const int64_t page = pool.pages_of(s)[static_cast<size_t>(p / pool.page_size)];
      const auto slot =
          static_cast<size_t>((page * world.layout.kv_heads + head) * pool.page_size + p % pool.page_size);
      const auto bits = static_cast<F16>(scales[2 * slot] | scales[2 * slot + 1] << 8);
      for (size_t d = 0; d < static_cast<size_t>(world.layout.head_dim); ++d) {
        const uint8_t byte = bytes[slot * static_cast<size_t>(world.layout.head_dim) + d];
        const int integer = on_gpu() ? byte - 128 : static_cast<int8_t>(byte);
        values.push_back(integer * f16_to_float(bits));
      }
    }
    return values;
  }

  // Magnitudes of integers + 128, of keys [positions, dim]: the largest of each is 127.
  static ref::Values with_offset(const ref::Values& keys, int64_t dim) {
    ref::Values larger;
    for (auto key = keys.begin(); key != keys.end(); key += dim) {
      const auto size = [](double a, double b) { return std::abs(a) < std::abs(b); };
      const double largest = std::abs(*std::max_element(key, key + dim, size));
      for (int64_t d = 0; d < dim; ++d) larger.push_back(std::abs(key[d]) + 128.0 / 127.0 * largest);
    }
    return larger;
  }

  // The row of a position, one query head, against attention over what the pages hold.
  void expect_attention(const Int8Sequences& world, const Int8Pool& pool, size_t s, int64_t position,
                        int64_t head) {
    const HeadLayout& layout = world.layout;
    const int64_t dim = layout.head_dim, kv = head / (layout.heads / layout.kv_heads);
    const int64_t first = world.window == 0 ? 0 : std::max<int64_t>(0, position - world.window + 1);
    const auto seen = [&](const ref::Values& all) {
      return ref::Values(all.begin() + first * dim, all.begin() + (position + 1) * dim);
    };
    const ref::Values keys = seen(stored(world, pool, s, kv, true)),
                      values = seen(stored(world, pool, s, kv, false));
    const auto at = world.qkv[s].begin() + position * world.width() + head * dim;
    const std::vector<float> query(at, at + dim);
    const ref::Values q = on_gpu() ? wide(rounded_to(query, DType::f16)) : wide(query);
    double largest = 0;
    for (const double value : values) largest = std::max(largest, std::abs(value));
    // As attention_test.cc derives them for f32 on a CPU and f16 on a GPU (there it is a weight times its
    // value's scale that is rounded); both sides multiply a score by its key's scale (one more rounding). A
    // GPU multiplies integers + 128: terms of its sums are up to three times as large as the largest value's,
    // and those of scores as with_offset says.
    const double step = on_gpu() ? 0x1p-22 : 2 * kUnit,
                 chunks = static_cast<double>((position - first) / 32 + 2);
    const double magnitude = ref::score_magnitude(q, on_gpu() ? with_offset(keys, dim) : keys);
    const double weight = 2 * static_cast<double>(dim + 9) * step * magnitude + 0x1p-21 +
                          (on_gpu() ? 0x1p-11 : 2 * kUnit) +
                          0x1p-25 * static_cast<double>(on_gpu() ? position - first + 1 : 0);
    const double relative = 2 * weight + (on_gpu() ? 3 : 1) * (64 + kAttentionChunk + 8 * chunks) * step;
    const ref::Values want = ref::attention(q, keys, values),
                      bound(want.size(), relative * largest + 0x1p-24);
    const auto got = world.out[s].begin() + (position * layout.heads + head) * dim;
    expect_close({got, got + dim}, want, bound);
  }

  Tensor rope_;
};

TEST_P(KvInt8, AHeadIsItsLargestMagnitudeIn127Steps) {
  for (const float magnitude : {1e-3f, 1.0f, 584.0f}) {
    Int8Sequences world{{4, 2, 64}};
    world.add(37, magnitude);
    const Int8Pool pool = make_pool(world, 16, 3);
    run(world, pool, {{0, 0, 37}}, false);
    for (const bool keys : {true, false})
      for (int64_t head = 0; head < 2; ++head) {
        const ref::Values got = stored(world, pool, 0, head, keys);
        for (int64_t p = 0; p < 37; ++p) {
          const int64_t column = (4 + (keys ? 0 : 2) + head) * 64;
          const auto x = world.qkv[0].begin() + p * world.width() + column;
          double largest = 0;
          for (int64_t d = 0; d < 64; ++d) largest = std::max<double>(largest, std::abs(x[d]));
          // Half a step, with a scale that f16 rounds (by 2^-11, or 2^-25 below 2^-14): the largest may then
          // lie beyond 127 steps.
          const double step = largest / 127 * (1 + 0x1p-11) + 0x1p-25;
          const double beyond = largest * 0x1p-11 + 127 * 0x1p-25;
          for (int64_t d = 0; d < 64; ++d)
            ASSERT_NEAR(got[static_cast<size_t>(p * 64 + d)], x[d], 0.5001 * step + beyond) << magnitude;
        }
      }
  }
}

TEST_P(KvInt8, AttentionIsThatOfTheStoredValues) {
  for (const HeadLayout& layout : {HeadLayout{4, 2, 32}, {3, 3, 64}, {4, 2, 128}, {16, 1, 64}})
    for (const int64_t window : {0, 70})
      for (const bool at_once : {false, true}) {
        Int8Sequences world{layout, window};
        world.add(1, 1), world.add(35, 3), world.add(290, 1);
        const Int8Pool pool = make_pool(world, 16, 5);
        // Single rows among them, which a GPU computes by other kernels.
        run(world, pool, {{0, 0, 1}, {1, 0, 34}, {2, 0, 289}}, at_once);
        run(world, pool, {{1, 34, 35}, {2, 289, 290}}, at_once);
        for (const int64_t head : {int64_t{0}, layout.heads - 1}) {
          expect_attention(world, pool, 0, 0, head);
          for (const int64_t position : {0, 16, 34}) expect_attention(world, pool, 1, position, head);
          for (const int64_t position : {63, 64, 128, 288, 289})
            expect_attention(world, pool, 2, position, head);
        }
      }
}

TEST_P(KvInt8, ARowIsTheSameInAnyBatchChunkingAndPaging) {
  for (const HeadLayout& layout : {HeadLayout{4, 2, 32}, {4, 2, 128}})
    for (const int64_t window : {0, 70}) {
      Int8Sequences alone{layout, window};
      for (const int64_t length : {1, 33, 200}) alone.add(length, 1);
      Int8Sequences batched = alone, decoded = alone;
      const Int8Pool pool = make_pool(alone, 32, 1);
      for (size_t s = 0; s < 3; ++s) run(alone, pool, {{s, 0, alone.length(s)}}, false);
      const Int8Pool other = make_pool(alone, 7, 2);
      run(batched, other, {{2, 0, 100}, {1, 0, 33}}, true);
      run(batched, other, {{2, 100, 199}, {0, 0, 1}}, true);
      run(batched, other, {{2, 199, 200}}, true);
      const Int8Pool third = make_pool(alone, 16, 3);
      for (int64_t p = 0; p < 200; ++p) {
        std::vector<Int8Piece> pieces;
        for (size_t s = 0; s < 3; ++s)
          if (p < alone.length(s)) pieces.push_back({s, p, p + 1});
        run(decoded, third, pieces, true);
      }
      for (size_t s = 0; s < 3; ++s) {
        EXPECT_EQ(alone.out[s], batched.out[s]) << s;
        EXPECT_EQ(alone.out[s], decoded.out[s]) << s;
      }
    }
}

// So many that a GPU decodes them by the kernel for many.
TEST_P(KvInt8, ARowOfManySequencesIsThatOfOneAlone) {
  constexpr size_t kSequences = 84;  // by 8 heads: five blocks to a multiprocessor
  for (const int64_t dim : {64, 128}) {
    Int8Sequences alone{{16, 8, dim}};
    for (size_t s = 0; s < kSequences; ++s) alone.add(66 + static_cast<int64_t>(s % 5), 1);
    Int8Sequences together = alone;
    const Int8Pool pool = make_pool(alone, 16, 1), other = make_pool(alone, 16, 2);
    std::vector<Int8Piece> prompts, rows;
    for (size_t s = 0; s < kSequences; ++s) {
      const int64_t last = alone.length(s) - 1;
      run(alone, pool, {{s, 0, last}}, true);
      run(alone, pool, {{s, last, last + 1}}, true);
      prompts.push_back({s, 0, last}), rows.push_back({s, last, last + 1});
    }
    run(together, other, prompts, true);
    run(together, other, rows, true);
    for (size_t s = 0; s < kSequences; ++s) ASSERT_EQ(alone.out[s], together.out[s]) << s;
  }
}

// Scales far apart: a GPU rounds weights times the scales of values.
TEST_P(KvInt8, ValuesOfAnyScaleKeepTheirShare) {
  Int8Sequences world{{2, 1, 64}};
  world.add(70, 1);
  for (int64_t p = 0; p < 70; ++p)
    for (int64_t d = 0; d < 64; ++d) {
      float& value = world.qkv[0][static_cast<size_t>(p * world.width() + 3 * 64 + d)];
      value = p == 40 ? 0 : value * (p % 3 == 0 ? 1e-4f : p % 3 == 1 ? 1e-1f : 500.0f);
    }
  const Int8Pool pool = make_pool(world, 16, 1);
  run(world, pool, {{0, 0, 69}}, true);
  run(world, pool, {{0, 69, 70}}, true);
  for (const int64_t position : {0, 1, 2, 40, 63, 64, 69}) expect_attention(world, pool, 0, position, 1);
}

TEST_P(KvInt8, AHeadThatIsNotFiniteShowsWhereItIsSeen) {
  for (const float broken :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    Int8Sequences world{{2, 1, 32}};
    world.add(6, 1);
    world.qkv[0][static_cast<size_t>(3 * world.width() + 3 * 32 + 5)] = broken;  // a value of position 3
    const Int8Pool pool = make_pool(world, 4, 1);
    run(world, pool, {{0, 0, 6}}, false);
    for (int64_t p = 3; p < 6; ++p)
      EXPECT_TRUE(std::isnan(world.out[0][static_cast<size_t>(p * world.out_width())])) << p;
  }
}

TEST_P(KvInt8, PagesWithoutTheirScalesAreRefused) {
  Int8Sequences world{{2, 1, 32}};
  world.add(4, 1);
  Int8Pool pool = make_pool(world, 4, 1);
  Int8Pool other = make_pool(world, 2, 1);
  std::swap(pool.v_scales, other.v_scales);
  EXPECT_THROW(run(world, pool, {{0, 0, 4}}, false), Error);
  pool.v_scales = {};
  EXPECT_THROW(run(world, pool, {{0, 0, 4}}, false), Error);
}

INSTANTIATE_TEST_SUITE_P(Machine, KvInt8, testing::ValuesIn(every_machine()), name_of_machine);

}  // namespace
}  // namespace shoal::ops
