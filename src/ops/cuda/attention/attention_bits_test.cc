// What a GPU alone has: a row's attention does not depend on the kernel, and a recording reads the tables as
// they are when it is replayed.
#include "ops/attention_testing.h"
#include "ops/cuda/attention/attention_kernels.h"
#include "ops/cuda/device/cuda_testing.h"
#include "ops/cuda/device/stream_state.h"
#include "tensor/device_memory.h"

namespace shoal::ops::cuda {
namespace {

using attention_testing::make_world;
using attention_testing::Piece;
using attention_testing::Pool;
using attention_testing::World;

using AttentionBitsTest = attention_testing::AttentionTestOf<CudaTest>;

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
        const Tensor out = garbage({step.rows(), world.out_width()});
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
