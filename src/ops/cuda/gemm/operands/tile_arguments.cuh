// What the kernels of tile.cuh are told.
#pragma once

#include "ops/cuda/gemm/operands/products.h"

namespace shoal::ops::cuda {

struct TileArguments {
  // Rows of x in units of 16 bytes.
  const uint4* x = nullptr;
  uint32_t row_stride = 0, tap_stride = 0;
  const int32_t* first_rows = nullptr;  // of the taps of every output row (TapRows); null: row t itself
  const uint4* weight = nullptr;
  int64_t rows = 0;
  int depth_chunks = 0;  // of 8 inputs, of one tap
  int tap_tiles = 0, row_tiles = 0, tile_rows = 0;
  int segments = 0, segment_tiles = 0;
  int row_blocks = 0, output_blocks = 0;
  int outputs = 0;
  bool paired = false;
  bool wide_stores = false;  // four outputs of a row at once: aligned to that
  // Outputs come in whole eights, wide stores, factors aligned to 16 bytes, no activation: what a thread has
  // summed can go to memory as it lies.
  bool plain = false;
  ProductEpilogue epilogue;
  const float* snake_alpha = nullptr;  // [outputs]: what is stored passes through snake first; or null
  // When every segment has its own blocks: their sums, and the counters of those that have arrived.
  float* partial = nullptr;
  unsigned* counters = nullptr;
};

// Whether the epilogue is plain (TileArguments::plain).
bool is_plain(const MatrixShape& matrix, const ProductEpilogue& epilogue, const float* snake_alpha);

// Of a product by blocks of so many rows and outputs.
TileArguments tile_arguments(const Product& product, int rows, int outputs, const float* snake_alpha);

}  // namespace shoal::ops::cuda
