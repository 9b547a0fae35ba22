// Inputs of f32 products on their way into shared memory.
#pragma once

#include "ops/cuda/gemm/f32/f32_product.cuh"
#include "ops/cuda/ptx/async_copy.cuh"

namespace shoal::ops::cuda {

// Some inputs of kSideOfBlock rows and of as many columns, as Tf32Sums::add reads them.
template <int kSideOfBlock, int kInputsOfPiece>
struct alignas(16) Tf32Piece {
  static constexpr int kSide = kSideOfBlock, kInputs = kInputsOfPiece;
  static constexpr int kXPitch = kInputs + 4, kWeightPitch = kSide + 8;
  float x[kSide][kXPitch];
  float weight[kInputs][kWeightPitch];
};

// A piece of a segment of the sum: inputs of a tap from `begin` on.
struct PieceOfSum {
  int segment = 0, begin = 0, end = 0;  // end: of the segment

  __device__ PieceOfSum(const F32Arguments& a, int of_segment)
      : segment(of_segment), begin(a.segment_begin(segment)), end(a.segment_end(segment)) {}
};

// A thread's share of copying pieces, among kThreads.
template <typename Piece, int kThreads>
class Tf32Copier {
 public:
  __device__ Tf32Copier(const F32Arguments& a, int64_t first_row, int64_t first_column, int thread)
      : a_(a), thread_(thread), first_column_(first_column), vectors_(a.has_vector_rows()) {
#pragma unroll
    for (int i = 0; i < kRowChunks; ++i) {
      const int64_t row = first_row + (thread_ + i * kThreads) / kChunksOfRow;
      rows_[i] = row < a.rows ? a.row_of(row, 0) : nullptr;
    }
  }

  // Starts the copies of a piece; zeros stand for inputs behind the segment and for missing rows.
  __device__ void copy(const PieceOfSum& piece, Piece& to) const {
    copy_weights(piece, to);
    copy_rows(piece, to);
  }

 private:
  static constexpr int kChunksOfRow = Piece::kInputs / 4, kChunksOfInput = Piece::kSide / 4;  // four floats
  static constexpr int kRowChunks = Piece::kSide * kChunksOfRow / kThreads;                   // of a thread
  static constexpr int kWeightChunks = Piece::kInputs * kChunksOfInput / kThreads;

  __device__ void copy_weights(const PieceOfSum& piece, Piece& to) const {
    const float* const from = a_.weight_of(piece.segment) + first_column_;
#pragma unroll
    for (int i = 0; i < kWeightChunks; ++i) {
      const int chunk = thread_ + i * kThreads, input = chunk / kChunksOfInput;
      const int column = chunk % kChunksOfInput * 4, k = piece.begin + input;
      copy_or_zero(shared_address(&to.weight[input][column]),
                   reinterpret_cast<const uint4*>(from + k * a_.columns + column), k < piece.end);
    }
  }
  __device__ void copy_rows(const PieceOfSum& piece, Piece& to) const {
    const int64_t tap = a_.several_taps ? piece.segment * a_.taps.dilation * a_.x_stride : 0;
#pragma unroll
    for (int i = 0; i < kRowChunks; ++i) {
      const int chunk = thread_ + i * kThreads, input = chunk % kChunksOfRow * 4, k = piece.begin + input;
      float* const into = &to.x[chunk / kChunksOfRow][input];
      if (vectors_) {
        const bool present = rows_[i] && k < piece.end;
        copy_or_zero(shared_address(into),
                     reinterpret_cast<const uint4*>(present ? rows_[i] + tap + k : a_.x), present);
        continue;
      }
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        if (rows_[i] && k + j < piece.end)
          copy_async<4>(into + j, rows_[i] + tap + k + j);
        else
          into[j] = 0.0f;
      }
    }
  }

  const F32Arguments& a_;
  int thread_;
  int64_t first_column_;
  bool vectors_;
  const float* rows_[kRowChunks];  // as the first segment sees them
};

}  // namespace shoal::ops::cuda
