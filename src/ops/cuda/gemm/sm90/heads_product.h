// The product before attention, with attention's preparation of heads as its epilogue, by the tensor cores of
// sm_90a.
#pragma once

#include "ops/cuda/device/machine.h"
#include "ops/cuda/gemm/operands/head_stores.h"
#include "ops/cuda/gemm/operands/products.h"

namespace shoal::ops::cuda {

// Whether heads_product is there and expected to gain.
bool suits_heads(const Product& product, const Machine& machine);

// product.epilogue: a bias, or none, and y, f32 [rows, outputs], of which only the rows of sequences of one
// row are written (HeadStores::offsets). The same bits as the product and prepare_heads().
void heads_product(Context& ctx, const Product& product, const HeadStores& stores);

}  // namespace shoal::ops::cuda
