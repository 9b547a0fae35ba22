// How skinny_kernel's work is cut into blocks.
#pragma once

#include "ops/cuda/device/machine.h"
#include "ops/cuda/gemm/skinny/skinny_arguments.cuh"

namespace shoal::ops::cuda {

// What follows from the shape of the matrix and the number of rows.
SkinnyArguments skinny_arguments(const MatrixShape& shape, int64_t rows, const TileForm& form = {});

// What `tiles` tiles of a row take in shared memory, wherever a piece of so many begins: their records, or
// the sums that take their place.
int place_bytes_of(const SkinnyArguments& a, int tiles);

// Sets block_rows, stage_tiles, stages, joined and the strides: as many rows of tiles to a block as keep the
// most loaded multiprocessor's part smallest; of these the most, so that x is read and normed by few blocks
// (a single row is normed in no time: kMostWarpTiles, kOneRowPairs). A segment streams through places for 24
// tiles where not even one row fits; a place holds a multiple of what the kernel asks for ahead.
void choose_cut(SkinnyArguments& a, const Machine& machine);

// The same for x of 16 bits that needs no norm. A single row whose segments are longer than what is asked for
// ahead would be waited for again and again: it is staged, if there is room. Not of 16-bit weights: on 9.0
// large ones stream. False: no room.
bool choose_half_cut(SkinnyArguments& a, const Machine& machine);

struct SkinnyForm {
  bool normed = false;  // it norms f32 rows itself
  TileForm weights;
};
// Whether the kernel can make the GEMM at all: one tap, few rows, and room in shared memory.
bool skinny_fits(const MatrixShape& shape, int64_t rows, const SkinnyForm& form, const Machine& machine);

}  // namespace shoal::ops::cuda
