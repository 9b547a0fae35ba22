// What the kernels share in which some warps bring rows and weights into shared memory while others multiply:
// buffers in turn, and the barriers between the two.
#pragma once

#include "ops/cuda/ptx/mbarrier.cuh"

namespace shoal::ops::cuda {

// `kCount` places in turn, and the parity of the phase that each of them is in.
template <int kCount>
struct Ring {
  int at = 0;
  uint32_t parity = 0;

  __device__ void advance() {
    if (++at < kCount) return;
    at = 0;
    parity ^= 1;
  }
};

// Of stages of weights, which one thread brings, and of buffers of rows. A place is full when all has been
// brought, and empty when all who multiply have let it go.
template <int kStages, int kBuffers>
class ConvBarriers {
 public:
  static constexpr int kBytes = 16 * (kStages + kBuffers);

  __device__ explicit ConvBarriers(uint32_t base) : base_(base) {}

  __device__ uint32_t weights_full(int stage) const { return barrier(stage); }
  __device__ uint32_t weights_empty(int stage) const { return barrier(kStages + stage); }
  __device__ uint32_t rows_full(int buffer) const { return barrier(2 * kStages + buffer); }
  __device__ uint32_t rows_empty(int buffer) const { return barrier(2 * kStages + kBuffers + buffer); }

  // By one thread.  consumers: warps that multiply, each of which lets go by one lane; row_threads: that
  // bring rows; buffer_consumers: of the consumers, those that share a buffer.
  __device__ void init(uint32_t consumers, uint32_t row_threads, uint32_t buffer_consumers) const {
    for (int stage = 0; stage < kStages; ++stage) {
      init_barrier(weights_full(stage), 1);
      init_barrier(weights_empty(stage), consumers);
    }
    for (int buffer = 0; buffer < kBuffers; ++buffer) {
      init_barrier(rows_full(buffer), row_threads);
      init_barrier(rows_empty(buffer), buffer_consumers);
    }
    show_barriers();
  }

 private:
  __device__ uint32_t barrier(int index) const { return base_ + static_cast<uint32_t>(8 * index); }
  uint32_t base_;
};

// Names 64 rows in shared memory as an operand: no swizzle, eight rows in 128 bytes after the eight before,
// the next eight channels `pitch` rows of 16 bytes further.
__device__ constexpr uint64_t plain_operand_at(uint32_t shared, int pitch) {
  return uint64_t{128 >> 4} << 32 | static_cast<uint64_t>(pitch) << 16 | shared >> 4;
}

}  // namespace shoal::ops::cuda
