// One block draws for one row, which it holds in its registers. At 1,024 codes the work is some 500
// instructions for each of 256 threads, mostly the noise, which is computed before the logits are there, and
// the exponentials; what takes the time are three exchanges between the threads (largest logit; leader and
// total weight; weight before the leader) and the reading.
#include "ops/cuda/device/launch.cuh"
#include "ops/cuda/sampling/draw_wide.cuh"

namespace shoal::ops::cuda {
namespace {

constexpr int kMostThreads = 640;  // at two quads a thread 5,120 entries, in registers

template <int kQuads>
__global__ void __launch_bounds__(kMostThreads, 1) draw_kernel(const DrawCall call) {
  __shared__ BlockTeam::Places places;
  __shared__ uint32_t marks[kMostThreads];
  const int64_t row = blockIdx.x;
  const RowRules rules(call, row, marks[threadIdx.x]);
  const NoiseAhead<kQuads> noise(rules.settings().noise);
  wait_for_inputs();
  HeldEntries<kQuads, NoiseAhead<kQuads>> entries(call, row, 0, noise);
  entries.settle(rules);
  BlockTeam team(places);
  const uint32_t key = team.greatest(largest_key(entries));
  const int32_t entry = is_hopeless(key)
                            ? kNoEntry
                            : draw_row(call, row, team, entries, rules.settings(), Leader(), {value_of(key)});
  if (threadIdx.x == 0) write_drawn(call, row, entry);
}

void draw(Context& ctx, const DrawCall& call, int64_t rows) {
  const int64_t quads = blocks_for(call.vocabulary, 4);
  const auto start = [&](auto kernel, int64_t per_thread) {
    const int64_t threads = blocks_for(blocks_for(quads, per_thread), kWarp) * kWarp;
    launch(ctx, "draw", {dim3(static_cast<unsigned>(rows)), dim3(static_cast<unsigned>(threads))}, kernel,
           call);
  };
  if (quads <= kMostThreads) return start(draw_kernel<1>, 1);
  if (quads <= 2 * kMostThreads) return start(draw_kernel<2>, 2);
  draw_wide(ctx, call, rows);
}

DrawCall call_of(TensorView logits, const DrawTable& table, TensorView frames) {
  DrawCall call{};
  call.logits = logits.as<float>();
  call.stride = logits.stride(0);
  call.vocabulary = static_cast<int32_t>(logits.dim(1));
  call.rows = reinterpret_cast<const DrawRow*>(table.rows.as<uint8_t>());
  call.frames = frames.as<int32_t>();
  call.columns = frames.dim(1);
  return call;
}

}  // namespace

void draw_tokens(Context& ctx, TensorView logits, const DrawTable& table, const TokenHead& head,
                 TensorView frames) {
  DrawCall call = call_of(logits, table, frames);
  call.head = head;
  draw(ctx, call, logits.dim(0));
}

void draw_codes(Context& ctx, TensorView logits, const DrawTable& table, int64_t codebook,
                TensorView frames) {
  CHECK(table.codes.dim(2) <= kMostPenalised, "draw_codes: ", table.codes.dim(2),
        " codes to penalise, at most ", kMostPenalised);
  DrawCall call = call_of(logits, table, frames);
  call.codebook = static_cast<int32_t>(codebook);
  if (!table.codes.empty()) {
    call.codes = table.codes.as<int32_t>();
    call.codes_stride = table.codes.stride(0);
    call.codebook_stride = table.codes.stride(1);
    call.most_codes = static_cast<int32_t>(table.codes.dim(2));
    CHECK(call.most_codes <= kMostPenalised, "draw_codes: ", call.most_codes, " codes to penalise, at most ",
          kMostPenalised);
  }
  draw(ctx, call, logits.dim(0));
}

}  // namespace shoal::ops::cuda
