// The harmonic source: phases at the middles of rows, then samples. Values equal the CPU's
// (cpu/sequence/sequence_source.h), operation by operation, except the sums of phases: these are counted in
// units of 2^-64 of a turn, whose sums do not depend on order, and are within 2^-32 of a turn of the CPU's
// sums in f64.
#include "base/philox.h"
#include "ops/cuda/device/launch.cuh"
#include "ops/cuda/rows/segment_rows.cuh"
#include "ops/cuda/rows/vector_math.cuh"
#include "ops/cuda_backend.h"
#include "ops/sampling_noise.h"

namespace shoal::ops::cuda {
namespace {

constexpr int kHarmonicCount = static_cast<int>(kHarmonics);
constexpr int kPhaseThreads = kHarmonicCount * 32;  // a warp for each harmonic
constexpr int kThreads = 256, kBlock = 64, kBlockLanes = kBlock / 4;
constexpr int kPiece = kThreads / kBlockLanes * kBlock;  // samples of a block
constexpr uint32_t kNoiseStream = 1;                     // last word of the counter

struct SourceArguments {
  SegmentRows segments;
  const float* f0;
  const float* weights;
  const float* bias;
  double sample_rate;
  int width;  // samples of a row
  float amplitude, noise, voiced_above;
  const float* given;  // [samples, harmonics]; null: drawn
  const uint64_t* seeds;
  uint2* rises;  // [total_rows + segments, harmonics]: phase at the first sample and rise of each, in turns /
                 // 2^32
  float* out;

  // From the middle of row j - 1 of a segment to that of row j.
  __device__ uint2* rise(int segment, int64_t j) const {
    return rises + (segments.begin(segment) + segment + j) * kHarmonicCount;
  }
};

// Turns per sample, in units of 2^-64; a pitch that is not finite adds none.
__device__ inline uint64_t rate_of(float f0, int harmonic, double sample_rate) {
  if (!isfinite(f0)) return 0;
  const double turns = static_cast<double>(harmonic + 1) * static_cast<double>(f0) / sample_rate;
  const double upper = (turns - floor(turns)) * 0x1p32;  // up to 2^32, which stands for 0
  const double whole = floor(upper);
  return (static_cast<uint64_t>(whole) << 32) + static_cast<uint64_t>((upper - whole) * 0x1p32);
}

__device__ inline uint32_t rounded_turns(uint64_t turns) {
  return static_cast<uint32_t>((turns + 0x80000000u) >> 32);
}

// The sum over lanes up to and with this one.
__device__ inline uint64_t sum_up_to_lane(uint64_t value, int lane) {
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const uint64_t other = __shfl_up_sync(~0u, value, distance);
    if (lane >= distance) value += other;
  }
  return value;
}

// A block for each segment, a warp for each harmonic, a lane for each of 32 rows.
__global__ void __launch_bounds__(kPhaseThreads) phases_kernel(const SourceArguments a) {
  wait_for_inputs();
  const int segment = static_cast<int>(blockIdx.x), harmonic = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t rows = a.segments.rows(segment);
  const float* const f0 = a.f0 + a.segments.begin(segment);
  const auto width = static_cast<uint64_t>(a.width);
  // After the last row the phase is constant, as for a pitch of 0.
  const auto pitch = [&](int64_t row) { return row < rows ? f0[row] : 0.0f; };
  uint64_t before = 0;  // turns of the rows before these 32, for one sample a row
  float next = pitch(lane);
  for (int64_t first = 0; first <= rows; first += 32) {
    const int64_t row = first + lane;
    const uint64_t rate = rate_of(next, harmonic, a.sample_rate);
    next = pitch(row + 32);
    const uint64_t sum = before + sum_up_to_lane(rate, lane);
    // Before the middle of row 0 it is constant, too.
    const uint64_t turns = row == 0 ? rate : sum - rate, step = row == 0 ? 0 : rate;
    if (row <= rows)
      a.rise(segment, row)[harmonic] = {rounded_turns(width * turns + step / 2), rounded_turns(step)};
    before = __shfl_sync(~0u, sum, 31);
  }
}

// Four draws, for samples that are kBlockLanes apart.
__device__ inline void draw_noise(uint64_t seed, uint32_t counter, int harmonic, float (&noise)[4]) {
  const PhiloxBlock words = philox4x32(seed, {counter, static_cast<uint32_t>(harmonic), 0, kNoiseStream});
#pragma unroll
  for (int pair = 0; pair < 4; pair += 2) {
    const float u = uniform_open(words[static_cast<size_t>(pair)]);
    const float turn = uniform_open(words[static_cast<size_t>(pair) + 1]);
    const float radius = sqrtf(2.0f * negative_log(u));
    noise[pair] = radius * cosine_of_turn(turn);
    noise[pair + 1] = radius * sine_of_turn(turn);
  }
}

// One of the four samples of a thread.
struct Sample {
  const uint2* rise;  // of its row, [harmonics]
  uint32_t since;     // samples since the rise began
  float amplitude, level;
  float sum = 0;

  __device__ void add(int harmonic, float weight, float noise) {
    const uint2 own = rise[harmonic];
    const float turn = uniform_open(own.x + since * own.y);
    sum = fmaf(weight, fmaf(level, noise, amplitude * sine_of_turn(turn)), sum);
  }
};

__device__ inline Sample sample_of(const SourceArguments& a, int segment, int rows, int t) {
  const int row = min(t / a.width, rows - 1);  // where t is beyond the end, too
  const int rise = min((t + a.width / 2) / a.width, rows);
  const bool voiced = a.f0[a.segments.begin(segment) + row] > a.voiced_above;
  return {.rise = a.rise(segment, rise),
          .since = static_cast<uint32_t>(t - (rise * a.width - a.width / 2)),
          .amplitude = voiced ? a.amplitude : 0.0f,
          .level = voiced ? a.noise : a.amplitude / 3};
}

// A block: kPiece samples of a segment; a thread: four that share a block of the generator.
__global__ void __launch_bounds__(kThreads) samples_kernel(const SourceArguments a) {
  const float bias = a.bias[0];
  wait_for_inputs();
  const SegmentPiece piece = piece_of(a.segments, blockIdx.x, kPiece, a.width);
  if (piece.segment < 0) return;
  each_gap_of(a.segments, piece, [&](const Gap& gap) { clear_items(a.out, gap, a.width); });
  const int thread = static_cast<int>(threadIdx.x), segment = piece.segment;
  const int block = static_cast<int>(piece.first) / kBlock + thread / kBlockLanes,
            lane = thread % kBlockLanes;
  const int first = block * kBlock + lane;
  const int rows = static_cast<int>(a.segments.rows(segment)), samples = rows * a.width;
  if (first >= samples) return;
  const int64_t begin = a.segments.begin(segment) * a.width;
  Sample own[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) own[i] = sample_of(a, segment, rows, first + i * kBlockLanes);
  const uint64_t seed = a.given ? 0 : a.seeds[segment];
#pragma unroll 1
  for (int harmonic = 0; harmonic < kHarmonicCount; ++harmonic) {
    float noise[4];
    if (!a.given) draw_noise(seed, static_cast<uint32_t>(block * kBlockLanes + lane), harmonic, noise);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int64_t t = first + i * kBlockLanes;
      if (a.given) noise[i] = t < samples ? a.given[(begin + t) * kHarmonicCount + harmonic] : 0.0f;
      own[i].add(harmonic, a.weights[harmonic], noise[i]);
    }
  }
#pragma unroll
  for (int i = 0; i < 4; ++i)
    if (first + i * kBlockLanes < samples)
      a.out[begin + first + i * kBlockLanes] = tanh_of(own[i].sum + bias);
}

}  // namespace

void harmonic_source(Context& ctx, const HarmonicSource& source, TensorView f0, const Segments& segments,
                     const SourceNoise& noise, TensorView out) {
  if (segments.count() == 0) return cuda::fill_zero(ctx, out);
  const Workspace::Scope scope(*ctx.workspace);
  const TensorView rises =
      ctx.workspace->alloc(DType::i64, {segments.total_rows() + segments.count(), kHarmonics});
  const SourceArguments arguments{
      .segments = segment_rows(segments),
      .f0 = f0.as<float>(),
      .weights = source.weights.as<float>(),
      .bias = source.bias.as<float>(),
      .sample_rate = static_cast<double>(source.sample_rate_hz),
      .width = static_cast<int>(source.samples_per_row),
      .amplitude = source.amplitude,
      .noise = source.noise,
      .voiced_above = source.voiced_above_hz,
      .given = noise.given.empty() ? nullptr : noise.given.as<float>(),
      .seeds = noise.given.empty() ? static_cast<const uint64_t*>(noise.seed_table.data()) : nullptr,
      .rises = static_cast<uint2*>(rises.data()),
      .out = out.as<float>()};
  launch(ctx, "phases of the harmonic source",
         {dim3(static_cast<unsigned>(segments.count())), dim3(kPhaseThreads)}, phases_kernel, arguments);
  const Grid grid{
      .blocks = dim3(static_cast<unsigned>(most_pieces(segments, kPiece, source.samples_per_row))),
      .threads = dim3(kThreads)};
  launch(ctx, "harmonic_source", grid, samples_kernel, arguments);
}

}  // namespace shoal::ops::cuda
