#include "ops/cpu/gemm/matrix_input.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "ops/cpu/kernels/vector_kernels.h"

namespace shoal::ops::cpu {
namespace {

constexpr int64_t kElementsPerTask = 16 << 10;  // about 5 us of rounding
constexpr int64_t kFloatsTogether = 512;        // narrow rows are staged this many values at a time
constexpr int64_t kReadableRows =
    32;  // AMX loads whole tiles: what is after the last row is read, never used
constexpr int64_t kFewRows =
    32;  // per sequence: below this, blocks of rows within one sequence are too small

// bf16 as float. Matrix units read bf16 denormals as zero, so all instruction sets do.
float round_normal(float value) {
  const uint32_t bits = float_to_bf16(value);
  return std::bit_cast<float>(((bits & 0x7f80u) == 0 ? bits & 0x8000u : bits) << 16);
}

// x[0, width) -> out[0, padded), followed by zeros.
void store_row(const float* x, int64_t width, int64_t padded, RowFormat format, void* out) {
  if (format == RowFormat::bf16) {
    Bf16* to = static_cast<Bf16*>(out);
    vector_kernels().round_bf16(x, to, width);
    std::fill(to + width, to + padded, Bf16{0});
    return;
  }
  float* to = static_cast<float*>(out);
  if (format == RowFormat::rounded)
    for (int64_t i = 0; i < width; ++i) to[i] = round_normal(x[i]);
  else if (to != x)
    std::memcpy(to, x, static_cast<size_t>(width) * sizeof(float));
  std::fill(to + width, to + padded, 0.0f);
}

DType dtype_of(RowFormat format) { return format == RowFormat::bf16 ? DType::bf16 : DType::f32; }

char* row_at(TensorView view, int64_t row) {
  return static_cast<char*>(view.data()) + row * view.dim(1) * size_of(view.dtype());
}

// [rows, width] followed by readable memory.
TensorView alloc_rows(Workspace& workspace, RowFormat format, int64_t rows, int64_t width) {
  return workspace.alloc(dtype_of(format), {rows + kReadableRows, width}).slice(0, rows);
}

std::span<const Segment> one_segment(Workspace& workspace, int64_t rows) {
  const std::span<Segment> segments = workspace.array<Segment>(1);
  segments[0] = {.input_row = 0, .output_row = 0, .rows = rows};
  return segments;
}

int64_t input_rows_per_task(int64_t width) { return std::max<int64_t>(1, kElementsPerTask / width); }

// All rows of x, `padded` wide.
TensorView stored_rows(Context& ctx, TensorView x, RowFormat format, int64_t padded) {
  const int64_t width = x.dim(1);
  const TensorView staged = alloc_rows(*ctx.workspace, format, x.dim(0), padded);
  const bool at_once = padded == width && x.is_contiguous();
  ctx.team->parallel_for(x.dim(0), input_rows_per_task(width), [&](int64_t begin, int64_t end, int) {
    const int64_t step = at_once ? end - begin : 1;
    for (int64_t row = begin; row < end; row += step)
      store_row(x.row<float>(row), step * width, step * padded, format, row_at(staged, row));
  });
  return staged;
}

// Copies new rows after their histories, and the newest of them into the histories.
class SequenceWriter {
 public:
  // alpha: the snake's, repeated for `rows_together` rows; snaked: [workers, rows_together * width]. Both
  // empty without a snake.
  SequenceWriter(const ConvInput& input, int64_t look_back, RowFormat format, const StagedSequences& staged,
                 TensorView alpha, TensorView snaked)
      : input_(input),
        look_back_(look_back),
        format_(format),
        staged_(staged),
        alpha_(alpha),
        snaked_(snaked) {}

  void write_history(const Segment& segment, int sequence) const {
    float* const history = history_of(sequence);
    for (int64_t row = 0; row < look_back_; ++row)
      store_row(history + row * width(), width(), padded(), format_,
                row_at(staged_.rows, segment.input_row + row));
    if (segment.rows < look_back_)
      std::memmove(history, history + segment.rows * width(),
                   static_cast<size_t>((look_back_ - segment.rows) * width()) * sizeof(float));
  }

  // Rows t .. t + count - 1 of the sequence's new ones, count <= rows_together.
  void write_rows(const Segment& segment, int sequence, int64_t t, int64_t count, int worker) const {
    const float* x = input_.x.row<float>(segment.output_row + t);
    if (!alpha_.empty()) {
      float* y = snaked_.row<float>(worker);
      vector_kernels().snake(x, alpha_.as<float>(), y, count * width());
      x = y;
    }
    store_rows(x, count, row_at(staged_.rows, segment.input_row + look_back_ + t));
    keep_newest(segment, sequence, t, count, x);
  }

 private:
  void store_rows(const float* x, int64_t count, char* to) const {
    if (padded() == width()) return store_row(x, count * width(), count * width(), format_, to);
    const int64_t row_bytes = padded() * size_of(staged_.rows.dtype());
    for (int64_t row = 0; row < count; ++row)
      store_row(x + row * width(), width(), padded(), format_, to + row * row_bytes);
  }

  // Rows among the last `look_back` of the sequence go into its history.
  void keep_newest(const Segment& segment, int sequence, int64_t t, int64_t count, const float* x) const {
    const int64_t slot = look_back_ - segment.rows + t;  // of the first row
    const int64_t skipped = std::max<int64_t>(0, -slot);
    if (skipped >= count) return;
    std::memcpy(history_of(sequence) + (slot + skipped) * width(), x + skipped * width(),
                static_cast<size_t>((count - skipped) * width()) * sizeof(float));
  }

  // [look_back, width]
  float* history_of(int sequence) const {
    const ConvHistory& history = input_.history;
    return history.pool.row<float>(history.slots[static_cast<size_t>(sequence)]) + history.offset;
  }
  int64_t width() const { return input_.x.dim(1); }
  int64_t padded() const { return staged_.rows.dim(1); }

  const ConvInput& input_;
  int64_t look_back_;
  RowFormat format_;
  const StagedSequences& staged_;
  TensorView alpha_;   // [rows_together * width]
  TensorView snaked_;  // [workers, rows_together * width]
};

// One row per output that holds the inputs of all its taps end to end.
StagedInput gather_taps(Context& ctx, const StagedSequences& staged, const PanelLayout& layout, int64_t taps,
                        int64_t dilation) {
  const int64_t width = staged.rows.dim(1);  // one tap, padded unless folded
  const int64_t gathered = layout.taps * layout.depth;
  const Segment& last = staged.segments.back();
  const int64_t rows = last.output_row + last.rows;
  const int64_t element = size_of(staged.rows.dtype());
  const RowFormat format = staged.rows.dtype() == DType::bf16 ? RowFormat::bf16 : RowFormat::f32;
  const TensorView out = alloc_rows(*ctx.workspace, format, rows, gathered);
  ctx.team->parallel_for(rows, input_rows_per_task(gathered), [&](int64_t begin, int64_t end, int) {
    auto segment =
        std::upper_bound(staged.segments.begin(), staged.segments.end(), begin,
                         [](int64_t row, const Segment& s) { return row < s.output_row + s.rows; });
    for (int64_t row = begin; row < end; ++row) {
      if (row == segment->output_row + segment->rows) ++segment;
      const int64_t first = segment->input_row + row - segment->output_row;
      char* to = row_at(out, row);
      const int64_t pieces = dilation == 1 ? 1 : taps;  // undilated taps lie end to end already
      const int64_t piece = width * (taps / pieces) * element;
      for (int64_t tap = 0; tap < pieces; ++tap)
        std::memcpy(to + tap * piece, row_at(staged.rows, first + tap * dilation),
                    static_cast<size_t>(piece));
      std::memset(to + taps * width * element, 0, static_cast<size_t>((gathered - taps * width) * element));
    }
  });
  return {out.data(), out.dtype(), gathered, layout.depth, one_segment(*ctx.workspace, rows)};
}

// x[0, width) as integers, each group of inputs with a scale of its own, and zeros behind.
void round_to_integers(const float* x, int64_t width, int64_t padded, int8_t* out, float* scales) {
  const VectorKernels& kernels = vector_kernels();
  for (int64_t begin = 0; begin < width; begin += kGroup)
    *scales++ = kernels.round_i8(x + begin, out + begin, std::min(width - begin, kGroup));
  std::fill(out + width, out + padded, int8_t{0});
}

// Of integers and their scales, what the weights are off by: those of 8 bits are stored with an offset, those
// of 4 bits have a minimum.
void sum_groups(const StagedInput& staged, int64_t group, int64_t row) {
  const auto sum = vector_kernels().sum_i8;
  const int8_t* const integers = static_cast<const int8_t*>(staged.data) + row * staged.row_stride;
  if (!staged.offsets.empty()) {
    for (int64_t g = 0; g < staged.offsets.dim(1); ++g)
      staged.offsets.row<int32_t>(row)[g] =
          kIntegerOffset * static_cast<int32_t>(sum(integers + g * kGroup, kGroup));
    return;
  }
  for (int64_t g = 0; g < staged.sums.dim(1); ++g)
    staged.sums.row<float>(row)[g] =
        sum(integers + g * group, group) * staged.scales.row<float>(row)[g * group / kGroup];
}

StagedInput stage_integers(Context& ctx, TensorView x, MatrixFormat weights, int64_t padded) {
  const int64_t rows = x.dim(0);
  const TensorView integers = ctx.workspace->alloc(DType::i8, {rows + kReadableRows, padded}).slice(0, rows);
  StagedInput staged{integers.data(), DType::i8, padded, 0, one_segment(*ctx.workspace, rows)};
  staged.scales = ctx.workspace->alloc(DType::f32, {rows, padded / kGroup});
  if (weights.weights == DType::i8)
    staged.offsets = ctx.workspace->alloc(DType::i32, {rows, padded / kGroup});
  else
    staged.sums = ctx.workspace->alloc(DType::f32, {rows, padded / weights.group});
  ctx.team->parallel_for(rows, input_rows_per_task(x.dim(1)), [&](int64_t begin, int64_t end, int) {
    for (int64_t row = begin; row < end; ++row) {
      round_to_integers(x.row<float>(row), x.dim(1), padded, integers.row<int8_t>(row),
                        staged.scales.row<float>(row));
      sum_groups(staged, weights.group, row);
    }
  });
  return staged;
}

}  // namespace

RowFormat row_format(DType operand) {
  if (operand == DType::f32) return RowFormat::f32;
  return matrix_kernels().reads_bf16 ? RowFormat::bf16 : RowFormat::rounded;
}

StagedInput stage_rows(Context& ctx, TensorView x, const PackedMatrix& weight) {
  const PanelLayout layout = panel_layout(weight.format, 1, weight.depth);
  if (has_integers(weight.format)) return stage_integers(ctx, x, weight.format, layout.depth);
  const RowFormat format = row_format(weight.format.operand);
  const std::span<const Segment> segments = one_segment(*ctx.workspace, x.dim(0));
  if (format == RowFormat::f32 && layout.depth == weight.depth)
    return {x.data(), DType::f32, x.stride(0), 0, segments};
  const TensorView staged = stored_rows(ctx, x, format, layout.depth);
  return {staged.data(), staged.dtype(), layout.depth, 0, segments};
}

StagedInput stage_signal(Context& ctx, TensorView x, const PackedMatrix& weight, int64_t dilation) {
  const PanelLayout layout = panel_layout(weight.format, weight.taps, weight.depth);
  const RowFormat format = row_format(weight.format.operand);
  const int64_t width = layout.folded ? weight.depth : layout.depth;
  const bool as_it_is = format == RowFormat::f32 && width == weight.depth;
  const StagedSequences staged{as_it_is ? x : stored_rows(ctx, x, format, width),
                               one_segment(*ctx.workspace, x.dim(0) - (weight.taps - 1) * dilation)};
  if (layout.folded) return gather_taps(ctx, staged, layout, weight.taps, dilation);
  return {staged.rows.data(), staged.rows.dtype(), width, dilation * width, staged.segments};
}

StagedSequences stage_sequences(Context& ctx, const ConvInput& input, int64_t look_back, RowFormat format,
                                int64_t padded_width) {
  const int64_t width = input.x.dim(1);
  const std::span<Segment> all = ctx.workspace->array<Segment>(input.rows.rows.sequences());
  int64_t staged_rows = 0;
  size_t used = 0;
  const std::span<int32_t> sequence_of = ctx.workspace->array<int32_t>(input.rows.rows.sequences());
  for (int s = 0; s < input.rows.rows.sequences(); ++s) {
    if (input.rows.rows.count(s) == 0) continue;
    sequence_of[used] = s;
    all[used++] = {staged_rows, input.rows.rows.begin(s), input.rows.rows.count(s)};
    staged_rows += look_back + input.rows.rows.count(s);
  }
  const std::span<const Segment> segments = all.first(used);
  const StagedSequences staged{alloc_rows(*ctx.workspace, format, staged_rows, padded_width), segments};
  const int64_t rows_together = std::max<int64_t>(1, kFloatsTogether / width);
  TensorView alpha, snaked;
  if (!input.snake_alpha.empty()) {
    alpha = ctx.workspace->alloc(DType::f32, {rows_together * width});
    for (int64_t row = 0; row < rows_together && !is_planning(ctx); ++row)
      std::memcpy(alpha.as<float>() + row * width, input.snake_alpha.as<float>(),
                  static_cast<size_t>(width) * sizeof(float));
    snaked = ctx.workspace->alloc(DType::f32, {ctx.team->size(), rows_together * width});
  }
  const SequenceWriter writer(input, look_back, format, staged, alpha, snaked);
  const int32_t* sequence = sequence_of.data();

  // All histories are read before any is overwritten.
  if (look_back > 0)
    ctx.team->parallel_for(static_cast<int64_t>(used), input_rows_per_task(look_back * width),
                           [&](int64_t begin, int64_t end, int) {
                             for (int64_t i = begin; i < end; ++i)
                               writer.write_history(segments[static_cast<size_t>(i)], sequence[i]);
                           });
  ctx.team->parallel_for(
      input.rows.rows.rows(), input_rows_per_task(width), [&](int64_t begin, int64_t end, int worker) {
        auto segment =
            std::upper_bound(segments.begin(), segments.end(), begin,
                             [](int64_t row, const Segment& s) { return row < s.output_row + s.rows; });
        for (int64_t row = begin; row < end;) {
          if (row == segment->output_row + segment->rows) ++segment;
          const int64_t segment_end = std::min(end, segment->output_row + segment->rows);
          const int64_t count = std::min(rows_together, segment_end - row);
          writer.write_rows(*segment, sequence[segment - segments.begin()], row - segment->output_row, count,
                            worker);
          row += count;
        }
      });
  return staged;
}

StagedInput stage_convolution(Context& ctx, const ConvInput& input, const PackedMatrix& weight,
                              int64_t dilation) {
  const PanelLayout layout = panel_layout(weight.format, weight.taps, weight.depth);
  const int64_t width = layout.folded ? weight.depth : layout.depth;
  const StagedSequences staged =
      stage_sequences(ctx, input, (weight.taps - 1) * dilation, row_format(weight.format.operand), width);
  const int64_t sequences = static_cast<int64_t>(staged.segments.size());
  const bool short_sequences =
      weight.taps > 1 && sequences > 1 && input.rows.rows.rows() < sequences * kFewRows;
  if (layout.folded || short_sequences) return gather_taps(ctx, staged, layout, weight.taps, dilation);
  return {staged.rows.data(), staged.rows.dtype(), width, dilation * width, staged.segments};
}

}  // namespace shoal::ops::cpu
