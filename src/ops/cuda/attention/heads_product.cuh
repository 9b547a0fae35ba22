// The product before attention, with attention's preparation of heads as its epilogue, by the tensor cores of
// sm_90a: queries, keys and values are normed, turned and rounded as prepare_heads() does it
// (attention_kernels.h), queries to rows, keys and values into pages.
#pragma once

#include "ops/cuda/device/machine.h"
#include "ops/cuda/gemm/operands/products.h"
#include "ops/cuda/rows/kv_heads.cuh"

namespace shoal::ops::cuda {

// Of this many dims, in 16 bits.
constexpr int kStoredHeadDim = 128;

struct HeadStores {
  DType dtype = DType::bf16;  // of queries and pages: bf16 or f16
  Pages<uint16_t> pages;
  HeadTurn turn;
  uint16_t* q = nullptr;  // [rows, heads * kStoredHeadDim]
  int heads = 0;          // of queries; as many of keys and of values as pages have
  // Of the rows; a row below position 0 is padding, which has no place among queries and pages.
  const int32_t* positions = nullptr;
  const int32_t* sequences = nullptr;
  // Rows of each sequence, or null. With them, sequences of one row are left to another kernel, which takes
  // them as they are: their outputs go, in f32, to the product's y alone.
  const int32_t* offsets = nullptr;

  // Whether a head is of queries or keys.
  __device__ bool turns(int head) const { return head < heads + pages.kv_heads; }
};

// Whether heads_product is there and expected to gain.
bool suits_heads(const Product& product, const Machine& machine);

// product.epilogue: a bias, or none, and y, f32 [rows, outputs], of which only the rows of sequences of one
// row are written (HeadStores::offsets). The same bits as the product and prepare_heads().
void heads_product(Context& ctx, const Product& product, const HeadStores& stores);

}  // namespace shoal::ops::cuda
