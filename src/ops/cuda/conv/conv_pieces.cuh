// The rows of a batch of sequences in pieces of equal size, none of which holds rows of two sequences.
#pragma once

#include "ops/cuda/conv/conv_input.cuh"

namespace shoal::ops::cuda {

struct PieceRows {
  int sequence = 0;
  int64_t first = 0,
          count = 0;  // the piece's first row, and how many rows the sequence has; 0: no such piece
};

// Piece `piece`, the same for all lanes of a warp, which ask together: the pieces are dealt out to the
// sequences in order, each gets as many as it has `piece_rows` rows.
__device__ inline PieceRows rows_of_piece(const ConvSource& source, int piece, int piece_rows) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  int before = 0;  // pieces of the sequences before
  for (int base = 0; base < source.sequences; base += 32) {
    const int s = base + lane;
    const int count =
        s < source.sequences ? static_cast<int>(source.begin_of(s + 1) - source.begin_of(s)) : 0;
    const int pieces = (count + piece_rows - 1) / piece_rows;
    int end = pieces;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
      const int other = __shfl_up_sync(~0u, end, step);
      if (lane >= step) end += other;
    }
    const int mine = piece - before - (end - pieces);
    const unsigned found = __ballot_sync(~0u, mine >= 0 && mine < pieces);
    if (found) {
      const int from = __ffs(static_cast<int>(found)) - 1;
      return {base + from, __shfl_sync(~0u, mine, from) * piece_rows, __shfl_sync(~0u, count, from)};
    }
    before += __shfl_sync(~0u, end, 31);
  }
  return {};
}

// How many pieces there are. All lanes of a warp ask together.
__device__ inline int pieces_of(const ConvSource& source, int piece_rows) {
  unsigned own = 0;
  for (int s = static_cast<int>(threadIdx.x % 32); s < source.sequences; s += 32)
    own += static_cast<unsigned>((source.begin_of(s + 1) - source.begin_of(s) + piece_rows - 1) / piece_rows);
  return static_cast<int>(__reduce_add_sync(~0u, own));
}

// How many pieces there can be: no sequence needs more than one more than its share.
inline int most_pieces(const ConvSource& source, int piece_rows) {
  CHECK(source.rows < int64_t{1} << 31, "a convolution of ", source.rows, " rows");
  return static_cast<int>(source.rows / piece_rows) + source.sequences;
}

}  // namespace shoal::ops::cuda
