// The recurrence of a bidirectional LSTM. The two directions, and sets of segments of one, run in parallel;
// the segments of a set step together, so that one pass over the weights serves all of them. A single segment
// uses at most two threads: a step takes some microseconds, too short to share.
#include <algorithm>

#include "ops/cpu/rows/segment_pieces.h"
#include "ops/cpu/sequence/sequence_kernels.h"
#include "ops/cpu_backend.h"

namespace shoal::ops::cpu {
namespace {

// Segments by falling length, each with the set that runs it.
struct Turn {
  int64_t segment, set;
};

// The next longest segment goes to the set with the fewest rows.
std::span<const Turn> share_out(Context& ctx, const Segments& segments, int64_t sets) {
  const std::span<Turn> turns = ctx.workspace->array<Turn>(segments.count());
  for (size_t i = 0; i < turns.size(); ++i) turns[i] = {static_cast<int64_t>(i), 0};
  std::sort(turns.begin(), turns.end(), [&](const Turn& a, const Turn& b) {
    const int64_t rows = segments.rows(a.segment), other = segments.rows(b.segment);
    return rows > other || (rows == other && a.segment < b.segment);
  });
  const std::span<int64_t> load = ctx.workspace->array<int64_t>(sets);
  std::fill(load.begin(), load.end(), 0);
  for (Turn& turn : turns) {
    turn.set = std::min_element(load.begin(), load.end()) - load.begin();
    load[static_cast<size_t>(turn.set)] += segments.rows(turn.segment);
  }
  return turns;
}

// One direction of the segments of one set.
struct Run {
  TensorView products;
  const Segments& segments;
  const PackedLstm& lstm;
  TensorView y;
  std::span<const Turn> turns;
  const float* zeros;           // [hidden]
  float* cells;                 // [segments, hidden], zeros
  std::span<LstmState> states;  // [segments]

  void operator()(int64_t set, int64_t direction) const {
    const int64_t hidden = lstm.hidden;
    const float* recurrent = lstm.recurrent.view().row<float>(direction);
    int64_t longest = 0;
    for (const Turn& turn : turns)
      if (turn.set == set) longest = std::max(longest, segments.rows(turn.segment));
    for (int64_t t = 0; t < longest; ++t) {
      int64_t count = 0;
      for (const Turn& turn : turns) {
        if (segments.rows(turn.segment) <= t) break;  // turns are sorted, so later ones have ended too
        if (turn.set != set) continue;
        const int64_t begin = segments.begin(turn.segment), last = segments.rows(turn.segment) - 1;
        const int64_t row = direction == 0 ? begin + t : begin + last - t;
        const int64_t previous = direction == 0 ? row - 1 : row + 1;
        states[static_cast<size_t>(count++)] = {
            .before = t == 0 ? zeros : y.row<float>(previous) + direction * hidden,
            .gates = products.row<float>(row) + direction * 4 * hidden,
            .cells = cells + turn.segment * hidden,
            .after = y.row<float>(row) + direction * hidden};
      }
      sequence_kernels().lstm_step(
          {.recurrent = recurrent, .hidden = hidden, .states = states.data(), .count = count});
    }
  }
};

}  // namespace

Shape recurrent_shape(int64_t hidden) {
  return {2, (hidden + kLstmGroup - 1) / kLstmGroup, hidden, 4, kLstmGroup};
}

Tensor pack_recurrent(const LstmDirection& forward, const LstmDirection& backward) {
  const int64_t hidden = forward.weight_hh.dim(1);
  Tensor packed = Tensor::zeros(DType::f32, recurrent_shape(hidden));
  const int64_t groups = packed.dim(1);
  float* out = packed.as<float>();
  for (const TensorView& weight : {forward.weight_hh, backward.weight_hh})
    for (int64_t group = 0; group < groups; ++group)
      for (int64_t k = 0; k < hidden; ++k)
        for (int64_t gate = 0; gate < 4; ++gate)
          for (int64_t lane = 0; lane < kLstmGroup; ++lane, ++out) {
            const int64_t unit = group * kLstmGroup + lane;
            if (unit < hidden) *out = weight.row<float>(gate * hidden + unit)[k];
          }
  return packed;
}

void run_lstm(Context& ctx, TensorView products, const Segments& segments, const PackedLstm& lstm,
              TensorView y) {
  const Workspace::Scope scope(*ctx.workspace);
  const int64_t count = segments.count(), hidden = lstm.hidden;
  clear_gaps(segments, y);
  if (count == 0) return;
  const int64_t sets = std::clamp<int64_t>((ctx.team->size() + 1) / 2, 1, count);
  const std::span<const Turn> turns = share_out(ctx, segments, sets);
  const std::span<float> zeros = ctx.workspace->array<float>((1 + 2 * count) * hidden);
  std::fill(zeros.begin(), zeros.end(), 0.0f);
  const std::span<LstmState> states = ctx.workspace->array<LstmState>(2 * sets * count);
  ctx.team->parallel_for(2 * sets, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t direction = task % 2;
      const Run run{products,
                    segments,
                    lstm,
                    y,
                    turns,
                    zeros.data(),
                    zeros.data() + (1 + direction * count) * hidden,
                    states.subspan(static_cast<size_t>(task * count), static_cast<size_t>(count))};
      run(task / 2, direction);
    }
  });
}

}  // namespace shoal::ops::cpu
