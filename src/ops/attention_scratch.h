// What attention takes of the workspace besides its operands, where that grows with the positions.
#pragma once

#include <cstdint>

#include "ops/attention.h"

namespace shoal::ops {

// Positions of a chunk of keys on a GPU (cuda/attention/attention_tiles.cuh).
inline constexpr int64_t kGpuAttentionChunk = 64;

// What the blocks of a GPU that share a row park for one another (cuda/attention/attention_decode.cu), in a
// step of at most `rows` sequences of at most `positions`: every chunk's maximum, sum and values. More rows
// than multiprocessors share none; plans are made for GPUs that are not there, so it is for the largest.
int64_t parked_bytes(Device device, const HeadLayout& layout, DType kv_dtype, int64_t rows,
                     int64_t positions);

}  // namespace shoal::ops
