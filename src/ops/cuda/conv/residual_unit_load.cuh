// How a residual unit's weights and rows get into the shared memory of residual_unit.cuh.
#pragma once

#include "ops/cuda/conv/residual_unit_sizes.cuh"
#include "ops/cuda/rows/narrowed.cuh"
#include "ops/cuda/rows/snake.cuh"

namespace shoal::ops::cuda {

// By one thread: what(map, x, y, bytes) for each stage of a piece's weights, in the order in which they are
// used: by convolution, part of the outputs, tap, inputs.
template <int kChannels, typename What>
__device__ inline void for_stages(const UnitArguments& a, What&& what) {
  using Sizes = UnitSizes<kChannels>;
  constexpr int kUnits = Sizes::kTileRowBytes / kWeightMapUnit;
  for (int part = 0; part < Sizes::kWideParts; ++part)
    for (int i = 0; i < Sizes::kWideStages; ++i)
      what(a.wide, i * kUnits, part * (Sizes::kWideOutputs / kTileOutputs), Sizes::kWideBytes);
  for (int part = 0; part < Sizes::kNarrowParts; ++part)
    for (int i = 0; i < Sizes::kTapStages; ++i)
      what(a.narrow, i * kUnits, part * (Sizes::kNarrowOutputs / kTileOutputs), Sizes::kNarrowBytes);
}

template <int kChannels>
__device__ inline void load_stage(const UnitShared<kChannels>& shared, int stage, const CUtensorMap& map,
                                  int x, int y, int bytes) {
  arrive_expecting(shared.barriers().weights_full(stage), static_cast<uint32_t>(bytes));
  copy_rectangle(shared.weights(stage), map, x, y, shared.barriers().weights_full(stage));
}

// By one thread.
template <int kChannels>
__device__ inline void load_resident_weights(const UnitArguments& a, const UnitShared<kChannels>& shared) {
  int stage = 0;
  for_stages<kChannels>(a, [&](const CUtensorMap& map, int x, int y, int bytes) {
    load_stage(shared, stage++, map, x, y, bytes);
  });
}
// A block must not end before what it asked for is there.
template <int kChannels>
__device__ inline void wait_for_resident_weights(const UnitShared<kChannels>& shared) {
  for (int stage = 0; stage < UnitSizes<kChannels>::kStages; ++stage)
    wait_for_phase(shared.barriers().weights_full(stage), 0);
}

// By one warp: all pieces of the block, stage after stage.
template <int kChannels>
__device__ inline void stream_weights(const UnitArguments& a, const UnitShared<kChannels>& shared) {
  UnitRing<kChannels> ring;
  int left = UnitPieces<UnitSizes<kChannels>::kRows>(a.source).left();
  if (threadIdx.x % 32 != 0) return;
  for (; left > 0; --left)
    for_stages<kChannels>(a, [&](const CUtensorMap& map, int x, int y, int bytes) {
      wait_for_phase(shared.barriers().weights_empty(ring.stage), ring.parity ^ 1);
      load_stage(shared, ring.stage, map, x, y, bytes);
      ring.advance();
    });
}

// Brings rows by kThreads threads: one has four channels of every kTogether-th row.
template <typename T, int kChannels, int kThreads, int kBatch>
class UnitRows {
 public:
  using Sizes = UnitSizes<kChannels>;
  using Pieces = UnitPieces<Sizes::kRows>;
  static constexpr int kQuads = kChannels / 4;
  static constexpr int kTogether = kThreads / kQuads;  // rows that all threads bring
  static_assert(kTogether * kQuads == kThreads);
  static constexpr int kBatches = Sizes::kRows / (kTogether * kBatch);  // of the rows of a piece
  static_assert(kBatches * kTogether * kBatch == Sizes::kRows);
  static constexpr int kOldBatch = kBatch / 2;
  using Batch = float4[kBatch];  // rows of a thread that are on their way together

  // The thread's channels of a piece's first row, and the last row that the sequence has.
  struct Place {
    const float* x;
    int last;
  };

  // thread: of those that bring rows.
  __device__ UnitRows(const UnitArguments& a, const UnitShared<kChannels>& shared, int thread)
      : source_(a.source),
        shared_(shared),
        vectors_(a.vectors),
        quad_(thread % kQuads),
        row_(thread / kQuads),
        alpha_(four_at(shared.factors().wide_alpha + 4 * quad_)),
        inverse_(four_at(shared.factors().wide_inverse + 4 * quad_)) {}

  __device__ bool leads() const { return row_ == 0 && quad_ == 0; }
  __device__ Place place_of(const Pieces& piece) const {
    return {source_.x + (piece.begin() + piece.first()) * kChannels + 4 * quad_, piece.rows() - 1};
  }
  // The thread's channels of a buffer.
  __device__ char* column(int buffer) const {
    return shared_.row_bytes(buffer) + quad_ / 2 * Sizes::kPitch * 16 + quad_ % 2 * 8;
  }

  __device__ void load(const Place& place, int batch, Batch& values) const {
#pragma unroll
    for (int i = 0; i < kBatch; ++i) values[i] = load_row(place, row_ + (batch * kBatch + i) * kTogether);
  }
  // A piece's rows, of which the first batch is in values, -> its buffer; while rows pass through the snake,
  // those of the next batch are on their way, at last the next piece's.
  __device__ void bring(const Place& place, const Pieces& next, Batch& values, char* column) const {
    char* to = column + (source_.look_back + row_) * 16;
#pragma unroll 1
    for (int batch = 1; batch < kBatches; ++batch) exchange(place, batch, values, to);
    if (next.has_piece())
      exchange(place_of(next), 0, values, to);
    else
      store(values, to);
  }
  // What a piece looks back at. before: the buffer of the piece before.
  __device__ void look_back(const Pieces& piece, const char* before, char* column) const {
    if (piece.follows())
      copy_look_back(before, column);
    else
      bring_look_back(piece, column);
  }

  // Has the rows of a piece brought nearer, into the second-level cache.
  __device__ void prefetch(const Pieces& piece) const {
    if (!piece.has_piece() || !leads()) return;
    const float* const from = source_.x + (piece.begin() + piece.first()) * kChannels;
    prefetch_bulk(from, static_cast<uint32_t>(min(piece.rows(), Sizes::kRows) * kChannels) * 4);
  }

 private:
  // The rows in values -> to, which moves on; a batch of others takes their place.
  __device__ void exchange(const Place& place, int batch, Batch& values, char*& to) const {
#pragma unroll
    for (int i = 0; i < kBatch; ++i, to += kTogether * 16) {
      const uint2 rounded = rounded_four(snaked(values[i]));
      values[i] = load_row(place, row_ + (batch * kBatch + i) * kTogether);
      *reinterpret_cast<uint2*>(to) = rounded;
      asm volatile("" ::: "memory");  // one row after the other: more at a time take more registers
    }
  }
  __device__ void store(const Batch& values, char* to) const {
#pragma unroll
    for (int i = 0; i < kBatch; ++i)
      *reinterpret_cast<uint2*>(to + i * kTogether * 16) = rounded_four(snaked(values[i]));
  }

  // The end of the piece before is what this one looks back at. In one buffer: look-backs are shorter than
  // pieces, and a thread reads what it alone overwrites.
  __device__ void copy_look_back(const char* from, char* to) const {
    for (int m = row_; m < source_.look_back; m += kTogether)
      *reinterpret_cast<uint2*>(to + m * 16) =
          *reinterpret_cast<const uint2*>(from + (Sizes::kRows + m) * 16);
  }
  __device__ void bring_look_back(const Pieces& piece, char* to) const {
    const float* const history = source_.history_of(piece.sequence()) + 4 * quad_;
    const Place place = place_of(piece);
    const int inside = source_.look_back - piece.first();  // from here on, rows of the sequence
#pragma unroll 1
    for (int first = row_; first < source_.look_back; first += kOldBatch * kTogether) {
      float4 old[kOldBatch];
#pragma unroll
      for (int i = 0; i < kOldBatch; ++i) {
        const int m = min(first + i * kTogether, source_.look_back - 1);
        if (m >= inside)
          old[i] = load_row(place, m - source_.look_back);
        else if (vectors_)
          old[i] = four_at(history + (piece.first() + m) * kChannels);
        else
          old[i] = singles_at(history + (piece.first() + m) * kChannels);
      }
#pragma unroll
      for (int i = 0; i < kOldBatch; ++i) {
        const int m = first + i * kTogether;
        if (m < source_.look_back)
          *reinterpret_cast<uint2*>(to + m * 16) = rounded_four(m >= inside ? snaked(old[i]) : old[i]);
      }
    }
  }

  __device__ static float4 four_at(const float* from) { return *reinterpret_cast<const float4*>(from); }
  __device__ static float4 singles_at(const float* from) { return {from[0], from[1], from[2], from[3]}; }
  // Rows behind the sequence's last are loaded as that one: nobody stores what becomes of them.
  __device__ static float4 load_row(const Place& place, int row) {
    return four_at(place.x + min(row, place.last) * kChannels);
  }
  __device__ float4 snaked(const float4& x) const {
    return {near_snake(x.x, alpha_.x, inverse_.x), near_snake(x.y, alpha_.y, inverse_.y),
            near_snake(x.z, alpha_.z, inverse_.z), near_snake(x.w, alpha_.w, inverse_.w)};
  }
  __device__ static uint2 rounded_four(const float4& x) {
    struct alignas(8) {
      T v[4];
    } four = {narrowed_value<T>(x.x), narrowed_value<T>(x.y), narrowed_value<T>(x.z), narrowed_value<T>(x.w)};
    return *reinterpret_cast<const uint2*>(&four);
  }

  const ConvSource& source_;
  const UnitShared<kChannels>& shared_;
  const bool vectors_;
  const int quad_, row_;
  const float4 alpha_, inverse_;
};

// Tells those who multiply of the piece in a buffer.
template <int kChannels>
__device__ inline void announce(const UnitShared<kChannels>& shared, int buffer, const UnitTile& tile,
                                bool leads) {
  if (leads) shared.tile(buffer) = tile;
  arrive(shared.barriers().rows_full(buffer));
}

// By those who multiply and by the row warps: the former have brought the first piece, which the latter may
// copy from.
template <int kChannels>
__device__ inline void meet_at_first_piece() {
  constexpr int kThreads = 32 * (UnitSizes<kChannels>::kConsumerWarps + UnitSizes<kChannels>::kRowWarps);
  asm volatile("bar.sync 1, %0;" ::"n"(kThreads) : "memory");
}

// By the row warps, all pieces of the block but the first where others bring that.
template <typename T, int kChannels>
__device__ inline void load_pieces(const UnitArguments& a, const UnitShared<kChannels>& shared, int thread) {
  using Sizes = UnitSizes<kChannels>;
  using Rows = UnitRows<T, kChannels, 32 * Sizes::kRowWarps, Sizes::kRowsOfThread>;
  const Rows rows(a, shared, thread);
  typename Rows::Pieces pieces(a.source);
  Ring<Sizes::kBuffers> buffers, before;  // the piece's, and that of the one before
  typename Rows::Batch values;            // on their way
  rows.prefetch(pieces);
  if (pieces.has_piece() && !Sizes::kFirstByConsumers) rows.load(rows.place_of(pieces), 0, values);
  bool brings = !Sizes::kFirstByConsumers;
  if (!brings && !pieces.has_piece()) meet_at_first_piece<kChannels>();
  for (bool is_first = true; pieces.has_piece(); is_first = false, brings = true) {
    // All have brought the piece before, and have read the one before that.
    if (!is_first) wait_for_phase(shared.barriers().rows_full(before.at), before.parity);
    wait_for_phase(shared.barriers().rows_empty(buffers.at), buffers.parity ^ 1);
    const UnitTile tile{.first = pieces.begin() + pieces.first(),
                        .rows = pieces.rows(),
                        .ready_offset = (pieces.sequence() + 1) * a.ready_look_back};
    const typename Rows::Place place = rows.place_of(pieces);
    char* const column = rows.column(buffers.at);
    if (brings) rows.look_back(pieces, rows.column(before.at), column);
    pieces.next();
    rows.prefetch(pieces);
    if (brings) {
      rows.bring(place, pieces, values, column);
    } else {
      if (pieces.has_piece()) rows.load(rows.place_of(pieces), 0, values);
      meet_at_first_piece<kChannels>();
    }
    show_to_tensor_cores();
    announce(shared, buffers.at, tile, rows.leads());
    before = buffers;
    buffers.advance();
  }
  for (int group = 0; group < (Sizes::kOwnPieces ? 2 : 1); ++group, buffers.advance()) {
    wait_for_phase(shared.barriers().rows_empty(buffers.at), buffers.parity ^ 1);
    announce(shared, buffers.at, {}, rows.leads());
  }
}

// By those who multiply: the first piece of the block.
template <typename T, int kChannels>
__device__ inline void load_first_piece(const UnitArguments& a, const UnitShared<kChannels>& shared,
                                        int thread) {
  constexpr int kThreads = UnitSizes<kChannels>::kFirstThreads;
  using Rows = UnitRows<T, kChannels, kThreads, 16>;
  typename Rows::Pieces pieces(a.source);
  if (pieces.has_piece() && thread < kThreads) {
    const Rows rows(a, shared, thread);
    const typename Rows::Place place = rows.place_of(pieces);
    typename Rows::Batch values;
    rows.load(place, 0, values);
    char* const column = rows.column(0);
    rows.look_back(pieces, column, column);
    pieces.leave();
    rows.bring(place, pieces, values, column);
    show_to_tensor_cores();
  }
  meet_at_first_piece<kChannels>();
}

}  // namespace shoal::ops::cuda
