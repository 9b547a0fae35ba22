// A row's attention must not depend on the batch, on how it is cut or on where its pages lie.
#include "ops/attention_testing.h"
#include "ops/product_testing.h"

namespace shoal::ops {
namespace {

using attention_testing::make_world;
using attention_testing::Piece;
using attention_testing::Pool;
using attention_testing::World;

class AttentionBatch : public attention_testing::AttentionTestOf<ProductTest> {
 protected:
  // The last are of a GPU alone: with 16 bits tensor cores with groups of 1, 2 and more than a tile of query
  // heads, else lanes.
  static std::vector<World> worlds() {
    std::vector<World> all = {{{8, 1, 32}, dtype(), 1}, {{3, 3, 20}, dtype(), 40}, {{6, 2, 12}, dtype(), 70}};
    for (const HeadLayout& layout : {HeadLayout{4, 2, 32}, {3, 3, 20}})
      for (const int64_t window : {0, 60, 128}) all.push_back({layout, dtype(), window});
    if (on_gpu()) {
      for (const HeadLayout& layout : {HeadLayout{4, 4, 64}, {18, 1, 64}, {4, 2, 64}})
        all.push_back({layout, dtype()});
      all.push_back({{4, 2, 128}, dtype(), 0, false});
      all.push_back({{4, 2, 128}, dtype(), 100});
    }
    return all;
  }
};

TEST_P(AttentionBatch, ARowIsTheSameInAnyBatchChunkingAndPaging) {
  for (const World& kind : worlds()) {
    World alone = make_world(kind, {1, 7, 130, 300, 0});
    run_alone(alone, 16);

    World ragged = alone;
    ragged.forget();
    // With room for long contexts a GPU has another kernel for the sequences of one row.
    Pool scattered = make_pool(ragged, on_gpu() ? 10 : 5, true, 10);
    run(ragged, scattered, {{2, 0, 130}, {4, 0, 0}, {0, 0, 1}, {3, 0, 300}, {1, 0, 7}});
    expect_same_results(ragged, alone);

    World chunked = alone;
    chunked.forget();
    Pool large = make_pool(chunked, on_gpu() ? 32 : 128, true, 4);
    // Two sequences grow at different paces; the last pieces are single rows, as in decoding.
    run(chunked, large, {{3, 0, 1}, {2, 0, 100}, Piece::padding()});
    run(chunked, large, {{3, 1, 129}, {2, 100, 101}, {0, 0, 1}});
    run(chunked, large, {Piece::padding(), {2, 101, 129}, {3, 129, 298}, {1, 0, 7}});
    run(chunked, large, {{3, 298, 299}, Piece::padding(), {2, 129, 130}});
    run(chunked, large, {{3, 299, 300}});
    expect_same_results(chunked, alone);
  }
}

TEST_P(AttentionBatch, DecodingEveryPositionGivesThePrefill) {
  for (const World& kind : worlds()) {
    World whole = make_world(kind, {140});
    run_alone(whole, 16);
    World decoded = whole;
    decoded.forget();
    Pool pool = make_pool(decoded, 1, true);
    for (int64_t p = 0; p < 140; ++p) run(decoded, pool, {{0, p, p + 1}});
    expect_same_results(decoded, whole);
  }
}

TEST_P(AttentionBatch, AttendEqualsNormAppendAndAttentionInTurn) {
  for (const World& kind : worlds()) {
    World fused = make_world(kind, {7, 66, 0}), in_turn = fused;
    Pool pool = make_pool(fused, 16, true), other = make_pool(in_turn, 16, true);
    for (const std::vector<Piece>& pieces : std::vector<std::vector<Piece>>{
             {{0, 0, 6}, {2, 0, 0}, Piece::padding(), {1, 0, 65}}, {{1, 65, 66}, {0, 6, 7}}}) {
      run(fused, pool, pieces);
      run(in_turn, other, pieces, Way::in_turn);
      EXPECT_EQ(get_bytes(pool.k), get_bytes(other.k));
      EXPECT_EQ(get_bytes(pool.v), get_bytes(other.v));
    }
    expect_same_results(fused, in_turn);
  }
}

TEST_P(AttentionBatch, PagesOutsideTheWindowAreNeverLookedUp) {
  for (const World& kind : {World{{2, 1, 64}, dtype(), 20}, {{2, 1, 16}, dtype(), 20}}) {
    World world = make_world(kind, {200}), whole = world;
    run_alone(whole, 8);
    Pool pool = make_pool(world, 8, false);
    run(world, pool, {{0, 0, 190}});
    const std::span<int32_t> table = pool.pages_of(0);
    for (int64_t page = 0; page < (190 - 20 + 1) / 8; ++page) table[static_cast<size_t>(page)] = -77;
    run(world, pool, {{0, 190, 198}});
    run(world, pool, {{0, 198, 199}});
    run(world, pool, {{0, 199, 200}});
    expect_same_results(world, whole);
  }
}

// In a step's table, entries after a sequence's pages keep old values (dual_ar::StepMemory).
TEST_P(AttentionBatch, PagesAfterTheLastAreNeverLookedUp) {
  constexpr int32_t kNoPage = 1 << 30;
  for (const World& kind : worlds()) {
    World world = make_world(kind, {7, 200, 64}), alone = world;
    run_alone(alone, 16);
    Pool pool = make_pool(world, 16, true, 10);
    for (size_t s = 0; s < 3; ++s) {
      const std::span<int32_t> table = pool.pages_of(s);
      for (int64_t page = (world.length(s) + 15) / 16; page < std::ssize(table); ++page)
        table[static_cast<size_t>(page)] = page % 2 == 0 ? kNoPage : -77;
    }
    run(world, pool, {{0, 0, 6}, {1, 0, 198}, {2, 0, 63}});
    run(world, pool, {{2, 63, 64}, {1, 198, 199}, {0, 6, 7}});  // each of one row, one on a whole last page
    run(world, pool, {{1, 199, 200}});
    expect_same_results(world, alone);
  }
}

TEST_P(AttentionBatch, RingsOfPagesServeAWindow) {
  // Logical page p is page p % 3: 24 slots for a window of 16 and pieces of up to 9.
  World world = make_world({{2, 2, 64}, dtype(), 16}, {100}), whole = world;
  run_alone(whole, 8);
  Pool pool = make_pool(world, 8, false);
  const std::span<int32_t> table = pool.pages_of(0);
  for (size_t page = 0; page < table.size(); ++page) table[page] = static_cast<int32_t>(page % 3);
  int64_t at = 0;
  for (const int64_t piece : {5, 9, 1, 1, 9, 9, 1, 9, 9, 9, 9, 9, 9, 9, 2}) {
    run(world, pool, {{0, at, at + piece}});
    at += piece;
  }
  ASSERT_EQ(at, 100);
  expect_same_results(world, whole);
}

// What the next product reads: 16 bits on a GPU alone.
TEST_P(AttentionBatch, SixteenBitResultsAreTheRoundedF32Results) {
  for (const World& kind : {World{{4, 2, 64}, dtype()}, {{2, 1, 6}, dtype()}})
    for (const int64_t begin : {60, 69}) {
      World world = make_world(kind, {70});
      run_alone(world, 16);
      Pool pool = make_pool(world, 16, true);
      run(world, pool, {{0, 0, begin}});
      const Step step = make_step(world, pool, {{0, begin, 70}});
      for (const DType narrow : {DType::bf16, DType::f16}) {
        const Workspace::Scope scope(*ctx().workspace);
        const BatchPlan plan = on_device(ctx(), step.plan(pool));
        const Tensor qkv = put(step.qkv, {step.rows(), world.layout.qkv_width()});
        const Tensor out = garbage({step.rows(), world.out_width()}, narrow);
        if (!on_gpu()) {
          EXPECT_THROW(compute(world, plan, pool, qkv, out, Way::attend), Error);
          continue;
        }
        compute(world, plan, pool, qkv, out, Way::attend);
        const auto from = world.out[0].begin() + begin * world.out_width();
        EXPECT_EQ(get(out), rounded_to(std::vector<float>(from, world.out[0].end()), narrow));
      }
    }
}

INSTANTIATE_TEST_SUITE_P(Machine, AttentionBatch, testing::ValuesIn(products_on(every_machine())),
                         name_of_product);

}  // namespace
}  // namespace shoal::ops
