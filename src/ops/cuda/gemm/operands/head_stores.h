// What becomes of a product whose outputs are heads for attention (ops/attention.h): queries, keys and values
// are normed, turned and rounded as prepare_heads() does it, queries to rows, keys and values into pages.
#pragma once

#include "ops/cuda/rows/kv_heads.cuh"
#include "tensor/dtype.h"

namespace shoal::ops::cuda {

// Of this many dims, in 16 bits.
constexpr int kStoredHeadDim = 128;

struct HeadStores {
  DType dtype = DType::bf16;  // of queries and pages: bf16 or f16
  Pages<uint16_t> pages;
  HeadTurn turn;
  uint16_t* q = nullptr;  // [rows, heads * kStoredHeadDim]
  int heads = 0;          // of queries; as many of keys and of values as pages have
  // Of the rows; a row below position 0 is padding, of which nothing is stored.
  const int32_t* positions = nullptr;
  const int32_t* sequences = nullptr;
  // Rows of each sequence, or null. With them, sequences of one row are left to another kernel, which takes
  // them as they are: their outputs go, in f32, to the product's y alone.
  const int32_t* offsets = nullptr;

  // Whether a head is of queries or keys.
  __device__ bool turns(int head) const { return head < heads + pages.kv_heads; }
};

}  // namespace shoal::ops::cuda
