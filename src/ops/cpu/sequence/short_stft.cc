// Short Fourier transforms on the CPU: samples are arranged so that 16 frames are side by side
// (sequence_stft.h), and overlapping frames are added up, oldest first.
#include <algorithm>

#include "ops/cpu/rows/segment_pieces.h"
#include "ops/cpu/sequence/sequence_kernels.h"
#include "ops/cpu_backend.h"
#include "ops/stft_table.h"

namespace shoal::ops::cpu {
namespace {

constexpr int64_t kPieceFrames = 4 * kStftFrames;        // of a piece of work: some microseconds
constexpr int64_t kStride = kPieceFrames + kStftFrames;  // room for a last block that is not full

StftTables make_tables(Context& ctx, const ShortStft& stft, bool inverse) {
  const int64_t entries = stft.bins() * stft.points / 2;
  const std::span<float> cosines = ctx.workspace->array<float>(entries);
  const std::span<float> sines = ctx.workspace->array<float>(entries);
  fill_stft_tables(stft, inverse, cosines, sines);
  return {static_cast<int>(stft.points), cosines.data(), sines.data()};
}

// Index i of `samples` samples that are mirrored at both ends.
int64_t mirrored(int64_t i, int64_t samples) {
  if (i < 0) return -i;
  return i < samples ? i : 2 * (samples - 1) - i;
}

struct Forward {
  const ShortStft& stft;
  const float* x;
  const Segments& segments;
  TensorView y;
  StftTables tables;
  std::span<const int32_t> offsets;  // [points]

  // Frames [first, first + count) of a segment, at most kStftFrames.
  void run(int64_t segment, int64_t first, int64_t count) const {
    // Sample m * hop + b after the block's first one is at [b][m]. Samples of missing frames repeat the last
    // frame's.
    float staged[kMostPoints * (kStftFrames + 1)];
    const int64_t width = row_width(stft), samples = (segments.rows(segment) - 1) * stft.hop;
    const float* const own = x + segments.begin(segment) * stft.hop;
    const int64_t last = (count - 1) * stft.hop + stft.points - 1;
    for (int64_t m = 0, i = 0; m < width; ++m)
      for (int64_t b = 0; b < stft.hop; ++b, ++i)
        staged[b * width + m] =
            own[mirrored(first * stft.hop - stft.points / 2 + std::min(i, last), samples)];
    sequence_kernels().short_stft({.tables = tables,
                                   .samples = staged,
                                   .offsets = offsets.data(),
                                   .frames = static_cast<int>(count),
                                   .y = y.row<float>(segments.begin(segment) + first),
                                   .y_stride = y.stride(0)});
  }

  static int64_t row_width(const ShortStft& stft) { return kStftFrames + stft.points / stft.hop - 1; }
};

struct Inverse {
  const ShortStft& stft;
  TensorView x;
  const Segments& segments;
  float* y;
  StftTables tables;
  std::span<const double> squares;  // [points] of the window

  int64_t overlap() const { return stft.points / stft.hop; }

  // Hops [first, first + count) of a segment, counted from the first sample of frame 0: sums of the frames
  // that begin up to overlap() - 1 hops before.   pieces: [points, kStride]
  void run(int64_t segment, int64_t first, int64_t count, float* pieces) const {
    const int64_t frames = segments.rows(segment), before = overlap() - 1;
    transform(segment, first - before, count + before, pieces);
    const int64_t samples = (frames - 1) * stft.hop;
    float* const out = y + segments.begin(segment) * stft.hop;
    for (int64_t b = 0; b < stft.hop; ++b) {
      const float whole = envelope(b, 0, before);
      for (int64_t i = 0; i < count; ++i) {
        const int64_t hop = first + i, at = hop * stft.hop + b - stft.points / 2;
        if (at < 0 || at >= samples) continue;
        float sum = 0;
        for (int64_t back = before; back >= 0; --back)
          sum += pieces[(back * stft.hop + b) * kStride + before + i - back];
        const bool inside = hop >= before && hop < frames;
        const float weight =
            inside ? whole : envelope(b, std::max<int64_t>(0, hop - frames + 1), std::min(before, hop));
        out[at] = sum / weight;
      }
    }
  }

 private:
  // The windowed frames [first, first + count) of a segment; frames outside the segment are zeros.
  void transform(int64_t segment, int64_t first, int64_t count, float* pieces) const {
    const int64_t frames = segments.rows(segment);
    std::fill_n(pieces, stft.points * kStride, 0.0f);
    const int64_t end = std::min(first + count, frames);
    int64_t at = std::max<int64_t>(first, 0);
    while (at < end) {
      const int64_t taken = std::min<int64_t>(end - at, kStftFrames);
      sequence_kernels().inverse_short_stft({.tables = tables,
                                             .x = x.row<float>(segments.begin(segment) + at),
                                             .x_stride = x.stride(0),
                                             .frames = static_cast<int>(taken),
                                             .pieces = pieces + (at - first),
                                             .stride = kStride});
      at += taken;
    }
  }

  // Sum of the squared window over samples b + back * hop of the frames that begin `from` to `to` hops
  // before.
  float envelope(int64_t b, int64_t from, int64_t to) const {
    double sum = 0;
    for (int64_t back = from; back <= to; ++back) sum += squares[static_cast<size_t>(back * stft.hop + b)];
    return static_cast<float>(sum);
  }
};

}  // namespace

void short_stft(Context& ctx, const ShortStft& stft, TensorView x, const Segments& segments, TensorView y) {
  const Workspace::Scope scope(*ctx.workspace);
  clear_gaps(segments, y);
  const std::span<int32_t> offsets = ctx.workspace->array<int32_t>(stft.points);
  for (int64_t n = 0; n < stft.points; ++n)
    offsets[static_cast<size_t>(n)] =
        static_cast<int32_t>(n % stft.hop * Forward::row_width(stft) + n / stft.hop);
  const StftTables tables = make_tables(ctx, stft, false);
  const std::span<const SegmentPiece> pieces =
      cut_segments(ctx, segments, kPieceFrames, [&](int64_t s) { return segments.rows(s); });
  const Forward forward{stft, x.as<float>(), segments, y, tables, offsets};
  ctx.team->parallel_for(static_cast<int64_t>(pieces.size()), 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      const SegmentPiece& piece = pieces[static_cast<size_t>(i)];
      for (int64_t at = 0; at < piece.count; at += kStftFrames)
        forward.run(piece.segment, piece.first + at, std::min<int64_t>(kStftFrames, piece.count - at));
    }
  });
}

void inverse_short_stft(Context& ctx, const ShortStft& stft, TensorView x, const Segments& segments,
                        TensorView y) {
  const Workspace::Scope scope(*ctx.workspace);
  Segments samples = segments;  // the rows that become samples
  samples.extra = 0;
  clear_gaps(samples, y.reshape({segments.total_rows(), stft.hop}));
  const std::span<double> squares = ctx.workspace->array<double>(stft.points);
  for (int64_t n = 0; n < stft.points; ++n)
    squares[static_cast<size_t>(n)] = stft_window(n, stft.points) * stft_window(n, stft.points);
  const StftTables tables = make_tables(ctx, stft, true);
  const Inverse inverse{stft, x, segments, y.as<float>(), tables, squares};
  // Half a frame of hops is dropped at each end.
  const std::span<const SegmentPiece> pieces =
      cut_segments(ctx, segments, kPieceFrames - inverse.overlap() + 1,
                   [&](int64_t s) { return segments.rows(s) + inverse.overlap() - 1; });
  const TensorView scratch = ctx.workspace->alloc(DType::f32, {ctx.team->size(), stft.points * kStride});
  ctx.team->parallel_for(static_cast<int64_t>(pieces.size()), 1, [&](int64_t begin, int64_t end, int worker) {
    for (int64_t i = begin; i < end; ++i) {
      const SegmentPiece& piece = pieces[static_cast<size_t>(i)];
      inverse.run(piece.segment, piece.first, piece.count, scratch.row<float>(worker));
    }
  });
}

}  // namespace shoal::ops::cpu
