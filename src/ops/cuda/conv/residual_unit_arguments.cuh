// What the kernels of residual units share: what they are told, and the pieces in which they take its rows.
#pragma once

#include "ops/cuda/conv/conv_pieces.cuh"

namespace shoal::ops::cuda {

constexpr int kUnitTaps = 7, kUnitMostDilation = 9;

struct UnitArguments {
  ConvSource source;
  const void *wide_weights = nullptr, *narrow_weights = nullptr;  // of 16 bits, in the layout
  const float *wide_bias = nullptr, *narrow_bias = nullptr;       // [channels], or null
  const float* narrow_alpha = nullptr;                            // [channels]
  float* y = nullptr;                  // [rows, channels], not x; null: ready instead
  void* ready = nullptr;               // 16 bits, [rows + sequences * ready_look_back, channels], not x
  const float* ready_alpha = nullptr;  // [channels]
  int ready_look_back = 0;
  int dilation = 1;
  bool vectors = false;  // histories are aligned to 16 bytes
};

// Starts the kernel of residual_unit_mma.cuh.  operand: bf16 or f16.
void launch_mma_unit(Context& ctx, DType operand, const UnitArguments& arguments);

// Calls what.operator()<channels>(), if there are kernels for so many channels. Returns whether there are.
template <typename What>
bool with_unit_channels(int64_t channels, What&& what) {
  switch (channels) {
    case 64:
      return what.template operator()<64>(), true;
    case 96:
      return what.template operator()<96>(), true;
    case 128:
      return what.template operator()<128>(), true;
    case 192:
      return what.template operator()<192>(), true;
    case 256:
      return what.template operator()<256>(), true;
    case 384:
      return what.template operator()<384>(), true;
    default:
      return false;
  }
}

// The pieces of a block: neighbours, so that what one looks back at is the end of the one before, if that is
// of the same sequence. All lanes of a warp ask together.
template <int kRows>
class UnitPieces {
 public:
  __device__ explicit UnitPieces(const ConvSource& source) : source_(&source) {
    const int64_t all = pieces_of(source, kRows), blocks = gridDim.x;
    const int first = static_cast<int>(all * blockIdx.x / blocks);
    left_ = static_cast<int>(all * (blockIdx.x + 1) / blocks) - first;
    if (left_ == 0) return;
    const PieceRows rows = rows_of_piece(source, first, kRows);
    sequence_ = rows.sequence, first_ = static_cast<int>(rows.first), count_ = static_cast<int>(rows.count);
    begin_ = source.begin_of(sequence_);
  }

  __device__ bool has_piece() const { return left_ > 0; }
  __device__ int left() const { return left_; }
  __device__ bool follows() const { return follows_; }
  __device__ int sequence() const { return sequence_; }
  __device__ int first() const { return first_; }          // row of the sequence
  __device__ int rows() const { return count_ - first_; }  // of the sequence, from the piece's first on
  __device__ int64_t begin() const { return begin_; }      // row of x: the sequence's first

  __device__ void next() {
    if (--left_ <= 0) return;
    first_ += kRows;
    follows_ = first_ < count_;
    if (follows_) return;
    first_ = 0;
    do {
      ++sequence_;
      begin_ = source_->begin_of(sequence_);
      count_ = static_cast<int>(source_->begin_of(sequence_ + 1) - begin_);
    } while (count_ == 0);
  }

 private:
  const ConvSource* source_;
  int left_ = 0, sequence_ = 0, first_ = 0, count_ = 0;
  int64_t begin_ = 0;
  bool follows_ = false;
};

}  // namespace shoal::ops::cuda
