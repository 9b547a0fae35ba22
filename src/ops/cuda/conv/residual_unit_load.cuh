// How a residual unit's weights and rows get into the shared memory of residual_unit.cuh.
#pragma once

#include "ops/cuda/conv/residual_unit_rows.cuh"
#include "ops/cuda/conv/residual_unit_sizes.cuh"

namespace shoal::ops::cuda {

// By one thread: what(map, x, y, bytes) for each stage of a piece's weights, in the order in which they are
// used: by convolution, part of the outputs, tap, inputs.
template <int kChannels, typename What>
__device__ inline void for_stages(const WgmmaUnitArguments& a, What&& what) {
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
__device__ inline void load_resident_weights(const WgmmaUnitArguments& a,
                                             const UnitShared<kChannels>& shared) {
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
__device__ inline void stream_weights(const WgmmaUnitArguments& a, const UnitShared<kChannels>& shared) {
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

template <int kChannels, typename Rows>
__device__ inline Rows unit_rows(const UnitArguments& a, const UnitShared<kChannels>& shared, int thread) {
  const UnitFactors<kChannels>& f = shared.factors();
  const int c = 4 * Rows::quad_of(thread);
  return {a,
          thread,
          {*reinterpret_cast<const float4*>(f.wide_alpha + c),
           *reinterpret_cast<const float4*>(f.wide_inverse + c)}};
}

// Has the rows of a piece brought nearer, into the second-level cache.
template <int kChannels>
__device__ inline void prefetch(const ConvSource& source,
                                const UnitPieces<UnitSizes<kChannels>::kRows>& piece, bool leads) {
  if (!piece.has_piece() || !leads) return;
  const float* const from = source.x + (piece.begin() + piece.first()) * kChannels;
  prefetch_bulk(from, static_cast<uint32_t>(min(piece.rows(), UnitSizes<kChannels>::kRows) * kChannels) * 4);
}

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
  using Rows = UnitRows<T, Sizes, 32 * Sizes::kRowWarps, Sizes::kRowsOfThread>;
  const Rows rows = unit_rows<kChannels, Rows>(a, shared, thread);
  typename Rows::Pieces pieces(a.source);
  Ring<Sizes::kBuffers> buffers, before;  // the piece's, and that of the one before
  typename Rows::Batch values;            // on their way
  prefetch<kChannels>(a.source, pieces, rows.leads());
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
    char* const column = rows.column(shared.row_bytes(buffers.at));
    if (brings && pieces.follows())
      rows.copy_look_back(rows.column(shared.row_bytes(before.at)), column);
    else if (brings)
      rows.bring_look_back(pieces, column);
    pieces.next();
    prefetch<kChannels>(a.source, pieces, rows.leads());
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
  using Rows = UnitRows<T, UnitSizes<kChannels>, kThreads, 16>;
  typename Rows::Pieces pieces(a.source);
  if (pieces.has_piece() && thread < kThreads) {
    const Rows rows = unit_rows<kChannels, Rows>(a, shared, thread);
    const typename Rows::Place place = rows.place_of(pieces);
    typename Rows::Batch values;
    rows.load(place, 0, values);
    char* const column = rows.column(shared.row_bytes(0));
    rows.bring_look_back(pieces, column);
    rows.bring(place, values, column);
    show_to_tensor_cores();
  }
  meet_at_first_piece<kChannels>();
}

}  // namespace shoal::ops::cuda
