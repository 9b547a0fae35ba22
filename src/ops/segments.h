// Utterances of a batch end to end along time, with gaps between them.
#pragma once

#include <cstdint>
#include <span>

#include "tensor/tensor.h"

namespace shoal::ops {

// Segment s owns rows [begin(s), begin(s) + rows(s)) of a buffer of total_rows(); segments do not overlap,
// and rows outside all segments are gaps. A buffer is in order when its gaps are zeros: then a convolution
// over all of it equals that of every segment by itself between zeros, if the gaps are at least half as wide
// as its reach (kokoro/MODEL.md). Each op says what it writes into gaps.
struct Segments {
  std::span<const int32_t> starts;  // [segments] first frame of each, rising
  std::span<const int32_t> frames;  // [segments] frames of each, at least 1
  int64_t total = 0;                // frames of the buffer, including gaps before, between and after segments
  int64_t rate = 1;                 // rows a frame
  int64_t extra = 0;       // rows that every segment has beyond frames * rate (the spectrum's last one)
  TensorView tables = {};  // i32 [2, segments]: starts, frames, where kernels read them; empty on the CPU

  int64_t count() const { return static_cast<int64_t>(starts.size()); }
  int64_t begin(int64_t segment) const { return starts[static_cast<size_t>(segment)] * rate; }
  int64_t rows(int64_t segment) const { return frames[static_cast<size_t>(segment)] * rate + extra; }
  int64_t total_rows() const { return total * rate; }
  // The same segments at another rate.
  Segments at(int64_t rows_per_frame, int64_t more = 0) const {
    Segments other = *this;
    other.rate = rows_per_frame;
    other.extra = more;
    return other;
  }
};

// A CHECK that fails unless segments rise, fit and do not overlap. `op` is for the message.
void check_segments(const char* op, const Segments& segments);

}  // namespace shoal::ops
