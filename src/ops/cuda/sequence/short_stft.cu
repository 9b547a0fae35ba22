// Short Fourier transforms: a block takes the frames or the hops of a piece of a segment, through shared
// memory. Values are the CPU's (cpu/sequence/sequence_stft.h), operation by operation.
#include "ops/cuda/device/launch.cuh"
#include "ops/cuda/rows/segment_rows.cuh"
#include "ops/cuda/rows/vector_math.cuh"
#include "ops/cuda_backend.h"
#include "ops/stft_table.h"

namespace shoal::ops::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kPiece = 64;  // frames of a block, or hops
constexpr int kMostEntries = (kMostStftPoints / 2 + 1) * (kMostStftPoints / 2);

struct StftArguments {
  SegmentRows segments;  // rows: frames
  const float* x;
  float* y;
  int points, hop;
  // Passed as kernel parameters, so that no memory must outlive the launch.
  float cosines[kMostEntries], sines[kMostEntries];
  double squares[kMostStftPoints];  // of the window

  __device__ int half() const { return points / 2; }
  __device__ int bins() const { return points / 2 + 1; }
  __device__ int entries() const { return bins() * half(); }
  __device__ int overlap() const { return points / hop; }
};

StftArguments arguments_of(const ShortStft& stft, bool inverse, TensorView x, const Segments& segments,
                           TensorView y) {
  StftArguments a{.segments = segment_rows(segments),
                  .x = x.as<float>(),
                  .y = y.as<float>(),
                  .points = static_cast<int>(stft.points),
                  .hop = static_cast<int>(stft.hop)};
  fill_stft_tables(stft, inverse, a.cosines, a.sines);
  for (int64_t n = 0; n < stft.points; ++n)
    a.squares[n] = stft_window(n, stft.points) * stft_window(n, stft.points);
  return a;
}

// The tables in shared memory: cosines, then sines.
__device__ void copy_tables(const StftArguments& a, float* to) {
  for (int i = static_cast<int>(threadIdx.x); i < a.entries(); i += kThreads) {
    to[i] = a.cosines[i];
    to[a.entries() + i] = a.sines[i];
  }
}

// Index i of `samples` samples that are mirrored at both ends.
__device__ inline int64_t mirrored(int64_t i, int64_t samples) {
  if (i < 0) return -i;
  return i < samples ? i : 2 * (samples - 1) - i;
}

// Bin k of the frame whose samples begin at `frame`.
__device__ inline void transform(const StftArguments& a, const float* tables, const float* frame, int k,
                                 float* y) {
  const int half = a.half(), points = a.points;
  const float *const cosines = tables + k * half, *const sines = cosines + a.entries();
  float re = 0.0f, im = 0.0f;
  for (int n = 1; n < half; ++n) {
    const float first = frame[n], second = frame[points - n];
    re = fmaf(cosines[n - 1], first + second, re);
    im = fmaf(sines[n - 1], second - first, im);
  }
  re = fmaf(cosines[half - 1], frame[half], re);
  const bool real = k == 0 || k == half;
  if (real) im = 0.0f;
  y[k] = real ? fabsf(re) : sqrtf(fmaf(re, re, im * im));
  y[a.bins() + k] = angle_of(im, re);
}

// Shared: tables, then the samples of the piece's frames.
__global__ void __launch_bounds__(kThreads) stft_kernel(const __grid_constant__ StftArguments a) {
  extern __shared__ double shared[];
  float* const tables = reinterpret_cast<float*>(shared);
  float* const samples = tables + 2 * a.entries();
  copy_tables(a, tables);
  wait_for_inputs();
  const SegmentPiece piece = piece_of(a.segments, blockIdx.x, kPiece);
  if (piece.segment < 0) return;
  const int width = 2 * a.bins(), frames = static_cast<int>(piece.count);
  each_gap_of(a.segments, piece, [&](const Gap& gap) { clear_items(a.y, gap, width); });
  const int64_t begin = a.segments.begin(piece.segment);
  const int64_t all = (a.segments.rows(piece.segment) - 1) * a.hop;
  const float* const x = a.x + begin * a.hop;
  const int count = (frames - 1) * a.hop + a.points;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads)
    samples[i] = x[mirrored(piece.first * a.hop - a.half() + i, all)];
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < frames * a.bins(); i += kThreads) {
    const int frame = i / a.bins();
    transform(a, tables, samples + frame * a.hop, i % a.bins(), a.y + (begin + piece.first + frame) * width);
  }
}

// The inverse's shared memory: squares of the window, tables, spectra [frames, 2 * bins] and windowed frames
// [frames, points] of a piece's hops and the overlap() - 1 before them.
struct InverseShared {
  double* squares;
  float *tables, *spectra, *pieces;

  __device__ InverseShared(const StftArguments& a, double* shared) : squares(shared) {
    tables = reinterpret_cast<float*>(squares + a.points);
    spectra = tables + 2 * a.entries();
    pieces = spectra + (kPiece + a.overlap() - 1) * 2 * a.bins();
  }
};

// Real and imaginary part of bin k, from the network's form of magnitude and phase.
__device__ inline void spectrum_of(const float* x, int k, int bins, float* to) {
  const float magnitude = exponential(x[k]), phase = sine_of(x[bins + k]);
  to[k] = magnitude * cosine_of_unit(phase);
  to[bins + k] = magnitude * sine_of_quarter(phase);
}

// Samples n and points - n of a windowed frame, n from 1 to half.
__device__ inline void windowed(const StftArguments& a, const float* tables, const float* spectrum, int n,
                                float* piece) {
  const int half = a.half(), bins = a.bins();
  const float *const cosines = tables + n - 1, *const sines = cosines + a.entries();
  float even = 0.0f, odd = 0.0f;
  for (int k = 0; k < bins; ++k) {
    even = fmaf(cosines[k * half], spectrum[k], even);
    odd = fmaf(sines[k * half], spectrum[bins + k], odd);
  }
  piece[n] = even - odd;
  if (n < half) piece[a.points - n] = even + odd;
  if (n == half) piece[0] = 0.0f;
}

// Sample `b` of hop `hop` of a segment, counted from the first sample of frame 0: the sum over the frames
// that begin up to overlap() - 1 hops before, over that of their windows' squares.   last: the frame that
// begins with the hop.
__device__ inline float overlapped(const StftArguments& a, const InverseShared& shared, const float* last,
                                   int64_t hop, int b, int64_t frames) {
  const int before = a.overlap() - 1;
  float sum = 0.0f;
  double squares = 0.0;
  for (int back = before; back >= 0; --back) sum += last[(b + back * a.hop) - back * a.points];
  const int from = static_cast<int>(max(int64_t{0}, hop - frames + 1));
  const int to = static_cast<int>(min(int64_t{before}, hop));
  for (int back = from; back <= to; ++back) squares += shared.squares[back * a.hop + b];
  return sum / static_cast<float>(squares);
}

__global__ void __launch_bounds__(kThreads) inverse_stft_kernel(const __grid_constant__ StftArguments a) {
  extern __shared__ double memory[];
  const InverseShared shared(a, memory);
  const int thread = static_cast<int>(threadIdx.x), bins = a.bins(), before = a.overlap() - 1;
  copy_tables(a, shared.tables);
  if (thread < a.points) shared.squares[thread] = a.squares[thread];
  wait_for_inputs();
  // Half a frame of hops is dropped at each end.
  const SegmentPiece piece = piece_of(a.segments, blockIdx.x, kPiece, 1, before);
  if (piece.segment < 0) return;
  SegmentRows sounds = a.segments;  // the rows that become samples
  sounds.extra = 0;
  each_gap_of(sounds, piece, [&](const Gap& gap) { clear_items(a.y, gap, a.hop); });
  const int64_t begin = a.segments.begin(piece.segment), frames = a.segments.rows(piece.segment);
  const int64_t first = piece.first - before;
  const int count = static_cast<int>(piece.count) + before;  // frames, of which some do not exist
  const auto exists = [&](int frame) { return first + frame >= 0 && first + frame < frames; };
  for (int i = thread; i < count * bins; i += kThreads) {
    const int frame = i / bins;
    if (exists(frame))
      spectrum_of(a.x + (begin + first + frame) * 2 * bins, i % bins, bins,
                  shared.spectra + frame * 2 * bins);
  }
  __syncthreads();
  for (int i = thread; i < count * a.half(); i += kThreads) {
    const int frame = i / a.half(), n = i % a.half() + 1;
    float* const to = shared.pieces + frame * a.points;
    if (exists(frame))
      windowed(a, shared.tables, shared.spectra + frame * 2 * bins, n, to);
    else
      to[n] = to[a.points - n] = to[0] = 0.0f;
  }
  __syncthreads();
  float* const y = a.y + begin * a.hop;
  const int64_t samples = (frames - 1) * a.hop;
  for (int i = thread; i < piece.count * a.hop; i += kThreads) {
    const int hop = i / a.hop;
    const int64_t at = piece.first * a.hop + i - a.half();
    if (at >= 0 && at < samples)
      y[at] = overlapped(a, shared, shared.pieces + (hop + before) * a.points, piece.first + hop, i % a.hop,
                         frames);
  }
}

int64_t table_bytes(const ShortStft& stft) {
  return 2 * stft.bins() * (stft.points / 2) * static_cast<int64_t>(sizeof(float));
}

}  // namespace

void short_stft(Context& ctx, const ShortStft& stft, TensorView x, const Segments& segments, TensorView y) {
  if (segments.count() == 0) return cuda::fill_zero(ctx, y);
  const int64_t samples = (kPiece - 1) * stft.hop + stft.points;
  const Grid grid{
      .blocks = dim3(static_cast<unsigned>(most_pieces(segments, kPiece))),
      .threads = dim3(kThreads),
      .shared_bytes = static_cast<size_t>(table_bytes(stft)) + static_cast<size_t>(samples) * sizeof(float)};
  launch(ctx, "short_stft", grid, stft_kernel, arguments_of(stft, false, x, segments, y));
}

void inverse_short_stft(Context& ctx, const ShortStft& stft, TensorView x, const Segments& segments,
                        TensorView y) {
  if (segments.count() == 0) return cuda::fill_zero(ctx, y);
  const int64_t before = stft.points / stft.hop - 1;
  const int64_t floats = (kPiece + before) * (2 * stft.bins() + stft.points);
  const size_t bytes = static_cast<size_t>(stft.points) * sizeof(double) +
                       static_cast<size_t>(table_bytes(stft)) + static_cast<size_t>(floats) * sizeof(float);
  const Grid grid{.blocks = dim3(static_cast<unsigned>(most_pieces(segments, kPiece, 1, before))),
                  .threads = dim3(kThreads),
                  .shared_bytes = bytes};
  launch(ctx, "inverse_short_stft", grid, inverse_stft_kernel, arguments_of(stft, true, x, segments, y));
}

}  // namespace shoal::ops::cuda
