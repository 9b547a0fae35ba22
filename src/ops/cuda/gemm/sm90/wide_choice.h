// Chooses the kernel of wide.cuh for a matrix: all give the same bits, so only time matters.
#pragma once

#include <array>
#include <cstdint>
#include <cuda_runtime.h>
#include <optional>

#include "ops/cuda/device/machine.h"
#include "ops/cuda/gemm/operands/matrix_layout.cuh"

namespace shoal::ops::cuda {

// A block computes 64 * row_groups x outputs sums, each group of 64 rows in its own warpgroup. Unsplit, a
// block goes through all segments, one result after the other until none is left. Split, the blocks of a
// cluster divide the segments of one result among themselves. By segment, every segment is a result of its
// own, whose sums are left for others to add (wide_segments).
struct WideShape {
  int row_groups, outputs;
  bool split;
  int blocks;              // per multiprocessor that it leaves room for
  int consumer_registers;  // per multiplying thread, taken from the loading threads; 0: all have equally many
  bool large = false;      // only for matrices with more weights than shared memory holds (is_large)
  bool by_segment = false;

  constexpr int rows() const { return 64 * row_groups; }
  constexpr int threads() const { return 128 * (row_groups + 1); }
};

constexpr std::array<WideShape, 17> kWideShapes = {{
    {2, 192, false, 1, 224},
    {2, 128, false, 1, 224},
    {2, 96, false, 1, 0},
    {2, 64, false, 1, 0},
    {1, 64, false, 2, 0},
    {1, 32, false, 3, 0},
    {1, 128, true, 2, 0},
    {1, 96, true, 2, 0},
    {1, 64, true, 2, 0},
    {1, 32, true, 2, 0},
    {1, 160, false, 1, 200, true},
    {1, 160, false, 1, 200, true, true},
    {1, 48, false, 1, 0, true},
    {2, 160, false, 1, 224, true},
    {2, 160, false, 1, 224, true, true},
    {2, 144, false, 1, 224},
    {3, 128, false, 1, 0, false, true},
}};
// By segment: of large matrices, up to 64 rows and more; of others.
constexpr int kSegmentsShape = 11, kTallSegmentsShape = 14, kSmallSegmentsShape = 16;

// The registers left to a loading thread if the others take more.
constexpr int kWideLoaderRegisters = 56;

struct WideChoice {
  int shape = 0;    // of kWideShapes
  int cluster = 1;  // blocks that share a result: 2, 4 or 8 where the shape is split
  friend bool operator==(const WideChoice&, const WideChoice&) = default;
};

// How a block divides its shared memory: stages, then sums on their way to memory, then barriers.
struct WidePlan {
  int stage_tiles = 0;     // tiles of 32 inputs, all of one segment, that a stage holds at most
  int stages = 0;          // 0: not even two fit
  int copy_tiles = 0;      // of a copy of weights: of 4 tiles at most
  int local_segments = 0;  // of one block
  int sums_offset = 0, barriers_offset = 0, bytes = 0;
};
WidePlan wide_plan(const WideChoice& choice, const MatrixShape& matrix, const Machine& machine);

// Floats between rows of sums: eight padding floats after each row, against bank conflicts.
constexpr int kWideSumPadding = 8;
// Outputs of a warp that pass through shared memory at a time at most.
constexpr int kWideChunk = 32;

// Whether a product of few rows is bound by reading its weights from device memory, again in each step.
bool is_large(const MatrixShape& matrix, const Machine& machine);

// As multiplications of a whole product; those by segment are none.
bool can_do(const WideChoice& choice, const MatrixShape& matrix, const Machine& machine);
// Expected time in microseconds. rows > 0.
double expected_us(const WideChoice& choice, const MatrixShape& matrix, int64_t rows, const Machine& machine);
// The one that is expected to be the fastest.
WideChoice choose_wide(const MatrixShape& matrix, int64_t rows, const Machine& machine);

// Of kWideShapes, for the sums of each segment by blocks of their own, which wait (ops/residual.h): of large
// matrices for up to 256 rows, of others for 257 to 384 where all blocks run at once.
std::optional<int> segments_shape(const MatrixShape& matrix, int64_t rows, const Machine& machine);

}  // namespace shoal::ops::cuda
