// A row's attention must not depend on the kernel, the batch or the pages.
#include <array>
#include <cstring>

#include "ops/cuda/attention/attention_kernels.h"
#include "ops/cuda/attention/attention_testing.h"
#include "ops/cuda/device/stream_state.h"
#include "tensor/device_memory.h"

namespace shoal::ops::cuda {
namespace {

using AttentionBitsTest = AttentionTest;

// Of the tensor form with groups of 1, 2 and more than a tile of query heads; of lanes, with 16-bit keys and
// f32.
const std::vector<World>& worlds() {
  static const std::vector<World> all = {
      {{4, 4, 64}, DType::bf16},    {{4, 2, 128}, DType::bf16, 0, false}, {{4, 2, 128}, DType::f16, 100},
      {{8, 1, 32}, DType::bf16, 1}, {{18, 1, 64}, DType::bf16},           {{3, 3, 20}, DType::bf16, 40},
      {{4, 2, 64}, DType::f32},     {{6, 2, 12}, DType::f32, 70},
  };
  return all;
}

TEST_F(AttentionBitsTest, ARowIsTheSameInAnyBatchChunkingAndPaging) {
  for (const World& kind : worlds()) {
    World alone = make_world(kind, {1, 7, 130, 200, 0});
    run_alone(alone, 16);

    World ragged = alone;
    ragged.forget();
    // With room for long contexts the sequences of one row have a kernel of their own.
    Pool scattered = make_pool(ragged, 10, true, 10);
    run(ragged, scattered, {{2, 0, 130}, {4, 0, 0}, {0, 0, 1}, {3, 0, 200}, {1, 0, 7}});
    expect_same_results(ragged, alone);

    World chunked = alone;
    chunked.forget();
    Pool large = make_pool(chunked, 32, true, 4);
    run(chunked, large, {{3, 0, 1}, {2, 0, 100}, Piece::padding()});
    run(chunked, large, {{3, 1, 129}, {2, 100, 101}, {0, 0, 1}});
    run(chunked, large, {Piece::padding(), {2, 101, 129}, {3, 129, 198}, {1, 0, 7}});
    run(chunked, large, {{3, 198, 199}, Piece::padding(), {2, 129, 130}});
    run(chunked, large, {{3, 199, 200}});
    expect_same_results(chunked, alone);
  }
}

TEST_F(AttentionBitsTest, DecodingEveryPositionGivesThePrefill) {
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

TEST_F(AttentionBitsTest, AttendEqualsNormAppendAndAttentionInTurn) {
  for (const World& kind : worlds()) {
    World fused = make_world(kind, {7, 66}), in_turn = fused;
    Pool pool = make_pool(fused, 16, true), other = make_pool(in_turn, 16, true);
    for (const std::vector<Piece>& pieces : std::vector<std::vector<Piece>>{
             {{0, 0, 6}, Piece::padding(), {1, 0, 65}}, {{1, 65, 66}, {0, 6, 7}}}) {
      run(fused, pool, pieces);
      run(in_turn, other, pieces, Way::three_in_turn);
      EXPECT_EQ(get_bytes(pool.k), get_bytes(other.k));
      EXPECT_EQ(get_bytes(pool.v), get_bytes(other.v));
    }
    expect_same_results(fused, in_turn);
  }
}

// Few positions of f32 have a kernel of their own; with room for more pages the other one runs.
TEST_F(AttentionBitsTest, ShortSequencesAreTheSameInEitherKernel) {
  for (const int64_t dim : {32, 64, 128})
    for (const int64_t window : {0, 5})
      for (const bool normed : {false, true}) {
        World world = make_world({{4, 2, dim}, DType::f32, window, normed}, {10, 10, 3}), other = world;
        Pool pool = make_pool(world, 10, true), large = make_pool(other, 10, true, 5);
        for (const std::vector<Piece>& pieces :
             std::vector<std::vector<Piece>>{{{0, 0, 2}, {1, 0, 1}, Piece::padding(), {2, 0, 3}},
                                             {{1, 1, 2}, Piece::padding(), {0, 2, 3}},
                                             {{0, 3, 9}, {1, 2, 9}},
                                             {{0, 9, 10}, {1, 9, 10}}}) {
          run(world, pool, pieces);
          run(other, large, pieces);
        }
        expect_same_results(world, other);
      }
}

// A warp has two query heads then.
TEST_F(AttentionBitsTest, ShortSequencesOfManyAreTheSameInEitherKernel) {
  constexpr size_t kSequences = 320;  // by 8 heads: more warps than run at once
  std::vector<int64_t> lengths;
  for (size_t s = 0; s < kSequences; ++s) lengths.push_back(4 + static_cast<int64_t>(s % 7));
  for (const int64_t dim : {32, 64, 128}) {
    World world = make_world({{8, 4, dim}, DType::f32}, lengths), other = world;
    Pool pool = make_pool(world, 4, true), large = make_pool(other, 4, true, 9);
    for (const int step : {0, 1, 2}) {  // two rows, one, the rest
      std::vector<Piece> pieces;
      for (size_t s = 0; s < kSequences; ++s)
        pieces.push_back({s, step == 0 ? 0 : step + 1, step < 2 ? step + 2 : lengths[s]});
      pieces.push_back(Piece::padding());
      run(world, pool, pieces);
      run(other, large, pieces);
    }
    expect_same_results(world, other);
  }
}

TEST_F(AttentionBitsTest, PagesOutsideTheWindowAreNeverLookedUp) {
  for (const World& kind : {World{{2, 1, 64}, DType::bf16, 20}, {{2, 1, 64}, DType::f32, 20}}) {
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
TEST_F(AttentionBitsTest, PagesAfterTheLastAreNeverLookedUp) {
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

TEST_F(AttentionBitsTest, RingsOfPagesServeAWindow) {
  // Logical page p is page p % 3: 24 slots for a window of 16 and pieces of up to 9.
  World world = make_world({{2, 2, 64}, DType::bf16, 16}, {100}), whole = world;
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

TEST_F(AttentionBitsTest, EverySplitOfADecodeStepGivesTheSame) {
  constexpr int64_t kAll = 1000;  // chunks: more than a block has
  const std::vector<DecodeSplit> forms = {
      {.clustered = false, .deep = false},
      {.clustered = false, .deep = true},
      {.clustered = true, .deep = false, .kept = kAll},
      {.clustered = true, .deep = true, .kept = kAll},
      {.clustered = true, .deep = false, .kept = 1},
      {.clustered = true, .deep = true, .kept = 0},
  };
  for (const World& kind : {World{{4, 2, 128}, DType::bf16},
                            {{16, 2, 64}, DType::bf16, 300},
                            {{18, 1, 32}, DType::f16},
                            {{2, 2, 128}, DType::bf16, 64}}) {
    World world = make_world(kind, {1, 64, 65, 600});
    Pool pool = make_pool(world, 16, true);
    std::vector<Piece> pieces = {Piece::padding()};
    for (size_t s = 0; s < 4; ++s) {
      const int64_t length = world.length(s);
      run(world, pool, {{s, 0, length}});
      pieces.push_back({s, length - 1, length});
    }
    const Step step = make_step(world, pool, pieces);
    const Workspace::Scope scope(*ctx().workspace);
    const BatchPlan plan = on_device(ctx(), step.plan(pool));
    for (const int64_t splits : {1, 2, 4, 8})
      for (const DecodeSplit& how : forms) {
        if (how.clustered && (splits == 1 || state_of(ctx()).architecture() < 90)) continue;
        const Tensor qkv = put(step.qkv, {step.rows(), world.layout.qkv_width()});
        const Tensor out = put(std::vector<float>(static_cast<size_t>(step.rows() * world.out_width()), kNan),
                               {step.rows(), world.out_width()});
        const AttentionCall call{
            qkv, world.layout, {q_norm_, k_norm_, 1e-6f}, rope_, &plan, pool.layer(), world.window, out};
        decode_attention(ctx(), call, {splits, how.clustered, how.deep, how.kept});
        const std::vector<float> got = get(out);
        for (size_t s = 0; s < 4; ++s) {
          const auto at = got.begin() + static_cast<int64_t>(s + 1) * world.out_width();
          expect_same_bits({at, at + world.out_width()}, world.result(s, world.length(s) - 1));
        }
      }
  }
}

TEST_F(AttentionBitsTest, SixteenBitResultsAreTheRoundedF32Results) {
  for (const World& kind :
       {World{{4, 2, 64}, DType::bf16}, {{4, 2, 64}, DType::f32}, {{2, 1, 6}, DType::f32}})
    for (const int64_t begin : {60, 69}) {
      World world = make_world(kind, {70});
      run_alone(world, 16);
      Pool pool = make_pool(world, 16, true);
      run(world, pool, {{0, 0, begin}});
      const Step step = make_step(world, pool, {{0, begin, 70}});
      for (const DType dtype : {DType::bf16, DType::f16}) {
        const Workspace::Scope scope(*ctx().workspace);
        const BatchPlan plan = on_device(ctx(), step.plan(pool));
        const Tensor qkv = put(step.qkv, {step.rows(), world.layout.qkv_width()});
        const Tensor out(dtype, {step.rows(), world.out_width()}, kDevice);
        compute(world, plan, pool, qkv, out, Way::attend);
        const auto from = world.out[0].begin() + begin * world.out_width();
        EXPECT_EQ(get(out), rounded_to(std::vector<float>(from, world.out[0].end()), dtype));
      }
    }
}

// A recorded step takes rows and positions from memory: the same recording decodes position after position,
// also where a row becomes padding.
TEST_F(AttentionBitsTest, AReplayedGraphReadsTheCurrentTables) {
  for (const World& kind : {World{{4, 2, 128}, DType::bf16}, {{2, 2, 64}, DType::f32}}) {
    World world = make_world(kind, {90, 90}), recorded = world;
    run_alone(world, 16);
    Pool pool = make_pool(recorded, 16, true);
    run(recorded, pool, {{0, 0, 60}, {1, 0, 80}});
    recorded.forget();

    ctx().graphs = &graphs();
    const int64_t width = world.layout.qkv_width();
    const Tensor qkv(DType::f32, {2, width}, kDevice), out(DType::f32, {2, world.out_width()}, kDevice);
    const Tensor positions(DType::i32, {2}, kDevice), table(DType::i32, {2, pool.per_sequence}, kDevice);
    const std::vector<int32_t> offsets = {0, 1, 2}, sequences = {0, 1};
    const Tensor offsets_there = put(offsets, {3}), sequences_there = put(sequences, {2});
    for (int64_t i = 0; i < 12; ++i) {
      const Step step = make_step(
          recorded, pool, {{0, 60 + i, 61 + i}, i < 10 ? Piece{1, 80 + i, 81 + i} : Piece::padding()});
      const auto fill = [&](const auto& from, TensorView to) {
        device_memory::copy(from.data(), Device{}, to.data(), kDevice, to.bytes());
      };
      fill(step.qkv, qkv);
      fill(step.positions, positions);
      fill(step.table, table);
      BatchPlan plan = step.plan(pool);
      plan.tables = {offsets_there, positions, sequences_there, table, true};
      run_step(ctx(), {this, static_cast<int64_t>(kind.dtype), 2, 2},
               [&] { compute(recorded, plan, pool, qkv, out, Way::attend); });
      const std::vector<float> got = get(out);
      const auto middle = got.begin() + world.out_width();
      expect_same_bits({got.begin(), middle}, world.result(0, 60 + i));
      expect_same_bits({middle, got.end()}, i < 10
                                                ? world.result(1, 80 + i)
                                                : std::vector<float>(static_cast<size_t>(world.out_width())));
    }
    EXPECT_GT(graphs().count(), 0);
    graphs().clear();
    ctx().graphs = nullptr;
  }
}

}  // namespace
}  // namespace shoal::ops::cuda
