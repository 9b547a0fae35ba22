// Several blocks process a row: for its largest logit, then for its total weight and the first leader of the
// race. One block decides whether that leader is kept and runs further races; each of them reads the row once
// more: 155,776 logits in about 5 us, and entries outside a race need no noise.
#include "ops/cuda/device/launch.cuh"
#include "ops/cuda/sampling/draw_wide.cuh"

namespace shoal::ops::cuda {
namespace {

constexpr int kChunkThreads = 256, kChunkQuads = 4;
constexpr int64_t kChunk = 4 * kChunkThreads * kChunkQuads;  // entries of a block
constexpr int kFinishThreads = 1024;

struct ChunkRace {
  Leader leader;
  uint64_t weight;
};

struct WideScratch {
  uint32_t* keys;    // [rows, chunks]
  ChunkRace* races;  // [rows, chunks]
  int32_t chunks;
};

// Of all chunks, by each warp for itself.
__device__ uint32_t largest_of(const WideScratch& scratch, int64_t row) {
  uint32_t key = 0;
  for (int i = lane_index(); i < scratch.chunks; i += kWarp)
    key = max(key, scratch.keys[row * scratch.chunks + i]);
  return __reduce_max_sync(kWholeWarp, key);
}

__device__ Leader leader_of(const WideScratch& scratch, int64_t row, uint64_t& weight) {
  Leader leader;
  weight = 0;
  for (int i = lane_index(); i < scratch.chunks; i += kWarp) {
    const ChunkRace& race = scratch.races[row * scratch.chunks + i];
    leader.meet(race.leader);
    weight += race.weight;
  }
  weight = warp_total(weight);
  return warp_lead(leader);
}

__global__ void __launch_bounds__(kChunkThreads)
    wide_largest_kernel(const DrawCall call, const WideScratch scratch) {
  __shared__ BlockTeam::Places places;
  __shared__ uint32_t marks[kChunkThreads];
  wait_for_inputs();
  const int64_t chunk = blockIdx.x, row = blockIdx.y;
  HeldEntries<kChunkQuads> entries(call, row, static_cast<int32_t>(chunk * kChunk / 4));
  const RowRules rules(call, row, marks[threadIdx.x]);
  entries.settle(rules);
  const uint32_t key = BlockTeam(places).greatest(largest_key(entries));
  if (threadIdx.x == 0) scratch.keys[row * scratch.chunks + chunk] = key;
}

__global__ void __launch_bounds__(kChunkThreads)
    wide_race_kernel(const DrawCall call, const WideScratch scratch) {
  __shared__ BlockTeam::Places places;
  __shared__ uint32_t marks[kChunkThreads];
  wait_for_inputs();
  const int64_t chunk = blockIdx.x, row = blockIdx.y;
  const uint32_t key = largest_of(scratch, row);
  if (is_hopeless(key)) return;
  HeldEntries<kChunkQuads> entries(call, row, static_cast<int32_t>(chunk * kChunk / 4));
  const RowRules rules(call, row, marks[threadIdx.x]);
  entries.settle(rules);
  BlockTeam team(places);
  RowState state{value_of(key)};
  const Leader leader = run_race(team, entries, rules.settings(), Rank::last(), state);
  if (threadIdx.x == 0) scratch.races[row * scratch.chunks + chunk] = {leader, state.total};
}

// A row in memory, read by a whole block.
class ReadEntries {
 public:
  __device__ ReadEntries(const DrawCall& call, int64_t row, const RowRules& rules)
      : call_(call), row_(row), rules_(rules) {}
  template <typename Body>
  __device__ void each(Body body) const {
    const int32_t quads = (call_.vocabulary + 3) / 4;
    for (int32_t first = warp_index() * kWarp; first < quads; first += static_cast<int32_t>(blockDim.x)) {
      float x[4];
      read_quad(call_, row_, first + lane_index(), x);
      rules_.settle(first, x);
      const int32_t quad = first + lane_index();
      body(quad, x, [quad](const NoiseStream& stream) { return noise_of_quad(stream, quad); });
    }
  }

 private:
  const DrawCall& call_;
  int64_t row_;
  const RowRules& rules_;
};

__global__ void __launch_bounds__(kFinishThreads)
    wide_finish_kernel(const DrawCall call, const WideScratch scratch) {
  __shared__ BlockTeam::Places places;
  __shared__ uint32_t marks[kFinishThreads];
  wait_for_inputs();
  const int64_t row = blockIdx.x;
  const uint32_t key = largest_of(scratch, row);
  int32_t entry = kNoEntry;
  if (!is_hopeless(key)) {
    const RowRules rules(call, row, marks[threadIdx.x]);
    BlockTeam team(places);
    RowState state{value_of(key)};
    const Leader leader = leader_of(scratch, row, state.total);
    entry = draw_row(call, row, team, ReadEntries(call, row, rules), rules.settings(), leader, state);
  }
  if (threadIdx.x == 0) write_drawn(call, row, entry);
}

}  // namespace

void draw_wide(Context& ctx, const DrawCall& call, int64_t rows) {
  const Workspace::Scope scope(*ctx.workspace);
  const int64_t chunks = blocks_for(call.vocabulary, kChunk);
  const int64_t race_bytes = static_cast<int64_t>(sizeof(ChunkRace));
  const WideScratch scratch{
      reinterpret_cast<uint32_t*>(ctx.workspace->alloc(DType::i32, {rows, chunks}).as<int32_t>()),
      reinterpret_cast<ChunkRace*>(ctx.workspace->alloc(DType::u8, {rows, chunks, race_bytes}).as<uint8_t>()),
      static_cast<int32_t>(chunks)};
  const dim3 every_chunk(static_cast<unsigned>(chunks), static_cast<unsigned>(rows));
  launch(ctx, "draw: largest logit", {every_chunk, dim3(kChunkThreads)}, wide_largest_kernel, call, scratch);
  launch(ctx, "draw: race", {every_chunk, dim3(kChunkThreads)}, wide_race_kernel, call, scratch);
  launch(ctx, "draw", {dim3(static_cast<unsigned>(rows)), dim3(kFinishThreads)}, wide_finish_kernel, call,
         scratch);
}

}  // namespace shoal::ops::cuda
