// tile_product (products.h) with what only convolutions, tests and measurements ask for.
#pragma once

#include "ops/cuda/gemm/operands/products.h"
#include "ops/cuda/gemm/tile/tile_choice.h"

namespace shoal::ops::cuda {

// snake_alpha: f32 [outputs]; the result passes through snake before it is stored. Null: it does not.
void tile_product(Context& ctx, const Product& product, const float* snake_alpha);

// By a kernel of the caller's choice (can_do).
void tile_product_by(Context& ctx, const Product& product, const TileChoice& choice,
                     const float* snake_alpha = nullptr);

TileMachine tile_machine(const Context& ctx);

}  // namespace shoal::ops::cuda
