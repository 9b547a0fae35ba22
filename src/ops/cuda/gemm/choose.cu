#include "ops/cuda/gemm/choose.h"
#include "ops/cuda/gemm/f32/f32_product.h"
#include "ops/cuda/gemm/f32/tf32_product.h"
#include "ops/cuda/gemm/operands/remembered.h"
#include "ops/cuda/gemm/operands/settled.cuh"
#include "ops/cuda/gemm/skinny/skinny_cut.h"
#include "ops/cuda/gemm/sm90/broad_product.h"
#include "ops/cuda/gemm/sm90/partial_product.h"
#include "ops/cuda/gemm/sm90/resident_product.h"
#include "ops/cuda/gemm/sm90/swapped_product.h"
#include "ops/cuda/gemm/sm90/wide_product.h"
#include "ops/cuda/gemm/tile/tile_product.h"

namespace shoal::ops::cuda {
namespace {

static_assert(kFewestPendingRows == kNormRows + 1, "where outgrows_skinny begins");

// What tile kernels of such sizes take, times tile_choice's guess: where groups of warps share the depth, and
// elsewhere.
constexpr double kGroupsOptimism = 1.0, kTileOptimism = 2.0;

constexpr int64_t kBusyBlocks = 2;          // of f32_blocks, of a multiprocessor
constexpr int64_t kBlockInSliceWarps = 5;   // warps of tf32_slices that a block of tf32_blocks is worth
constexpr int64_t kSharedBytes = 48 << 10;  // of a block, without asking for more

bool fits_swapped(const Gemm& gemm, const Machine& machine) {
  return gemm.linear && !gemm.activated &&
         swapped_plan(gemm.shape, gemm.form, gemm.rows, /*by_segment=*/false, machine).warps > 0;
}

// More rows than skinny holds in shared memory, of a matrix that is read from device memory anyway.
bool outgrows_skinny(const Gemm& gemm, const Machine& machine) {
  return machine.wgmma && gemm.rows > kNormRows && is_large(gemm.shape, machine) &&
         (gemm.form.bits == 16 || fits_swapped(gemm, machine));
}

int64_t blocks_of(int64_t items, int64_t per_block) { return (items + per_block - 1) / per_block; }

GemmKernel choose_f32(const Gemm& gemm, const Machine& machine) {
  const bool few = gemm.rows <= kF32FewRows && gemm.shape.taps == 1 && gemm.rows_in_place;
  const int64_t blocks = blocks_of(gemm.rows, kF32BlockRows) * (f32_columns(gemm.shape) / kF32Columns);
  if (!machine.wgmma || gemm.shape.depth < kTf32Inputs) {
    if (few) return GemmKernel::f32_few_rows;
    return blocks < kBusyBlocks * machine.multiprocessors ? GemmKernel::f32_slices : GemmKernel::f32_blocks;
  }
  if (few) return GemmKernel::tf32_few_rows;
  const int64_t warps = std::min<int64_t>(segments_of(gemm.shape), kF32SliceWarps);
  return kBlockInSliceWarps * blocks < warps * machine.multiprocessors ? GemmKernel::tf32_slices
                                                                       : GemmKernel::tf32_blocks;
}

// Of many rows, or of those that skinny has no room for.
GemmKernel choose_rounded(const Gemm& gemm, const Machine& machine) {
  if (!machine.wgmma) return GemmKernel::tile;
  if (fits_swapped(gemm, machine)) return GemmKernel::swapped;
  if (gemm.linear && resident_plan(gemm.shape, gemm.rows, machine).tile_rows > 0) return GemmKernel::resident;
  if (gemm.linear && gemm.plain && broad_plan(gemm.shape, gemm.rows, machine).outputs > 0)
    return GemmKernel::broad;
  return is_wide(gemm.shape, gemm.rows, machine) ? GemmKernel::wide : GemmKernel::tile;
}

}  // namespace

bool is_wide(const MatrixShape& matrix, int64_t rows, const Machine& machine) {
  static thread_local Remembered<bool> remembered;
  if (machine.wgmma && is_large(matrix, machine)) return true;
  return remembered.of({matrix, rows, machine}, [&] {
    const TileChoice tile = choose_tile(matrix, rows, machine);
    const bool groups = kTileShapes[static_cast<size_t>(tile.shape)].depth_groups > 1;
    return expected_us(choose_wide(matrix, rows, machine), matrix, rows, machine) <
           (groups ? kGroupsOptimism : kTileOptimism) * expected_us(tile, matrix, rows, machine);
  });
}

GemmChoice choose(const Gemm& gemm, const Machine& machine) {
  if (gemm.operand == DType::f32) return {choose_f32(gemm, machine)};
  const auto skinny = [&](bool normed) {
    return !gemm.snake && !outgrows_skinny(gemm, machine) &&
           skinny_fits(gemm.shape, gemm.rows, {normed, gemm.form}, machine);
  };
  if (gemm.f32_rows && skinny(gemm.norm)) return {GemmKernel::skinny, /*rounds=*/true};
  return {skinny(false) ? GemmKernel::skinny : choose_rounded(gemm, machine)};
}

bool adds_later(const Gemm& gemm, const Machine& machine) {
  const bool many = gemm.rows > kSkinnyRows || outgrows_skinny(gemm, machine);
  return machine.wgmma && many && size_of(gemm.operand) == 2 &&
         settled_bytes(gemm.shape.outputs) <= kSharedBytes &&
         (segments_shape(gemm.shape, gemm.rows, machine) ||
          partial_plan(gemm.shape, gemm.rows, machine).row_groups > 0);
}

}  // namespace shoal::ops::cuda
