#include "ops/cuda/gemm/choose.h"
#include "ops/cuda/gemm/sm90/wide_product.h"
#include "ops/cuda/gemm/tile/tile_product.h"

namespace shoal::ops::cuda {
namespace {

// What tile kernels of such sizes take, times tile_choice's guess: where groups of warps share the depth, and
// elsewhere.
constexpr double kGroupsOptimism = 1.0, kTileOptimism = 2.0;

}  // namespace

bool is_wide(const MatrixShape& matrix, int64_t rows, const Machine& machine) {
  const TileChoice tile = choose_tile(matrix, rows, machine);
  const bool groups = kTileShapes[static_cast<size_t>(tile.shape)].depth_groups > 1;
  return expected_us(choose_wide(matrix, rows, machine), matrix, rows, machine) <
         (groups ? kGroupsOptimism : kTileOptimism) * expected_us(tile, matrix, rows, machine);
}

bool wide_product(Context& ctx, const Product& product, const float* snake_alpha) {
  if (!has_wgmma(ctx)) return false;
  const Machine machine = machine_of(ctx);
  if (!is_wide(product.shape, product.rows, machine)) return false;
  wide_product_by(ctx, product, choose_wide(product.shape, product.rows, machine), snake_alpha);
  return true;
}

void tile_product(Context& ctx, const Product& product, const float* snake_alpha) {
  if (wide_product(ctx, product, snake_alpha)) return;
  tile_product_by(ctx, product, choose_tile(product.shape, product.rows, machine_of(ctx)), snake_alpha);
}

void tile_product(Context& ctx, const Product& product) { tile_product(ctx, product, nullptr); }

}  // namespace shoal::ops::cuda
