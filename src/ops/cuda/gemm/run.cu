#include "ops/cuda/gemm/choose.h"
#include "ops/cuda/gemm/f32/f32_product.h"
#include "ops/cuda/gemm/f32/tf32_product.h"
#include "ops/cuda/gemm/operands/tile_arguments.cuh"
#include "ops/cuda/gemm/run.h"
#include "ops/cuda/gemm/skinny/skinny_product.h"
#include "ops/cuda/gemm/sm90/broad_product.h"
#include "ops/cuda/gemm/sm90/resident_product.h"
#include "ops/cuda/gemm/sm90/swapped_product.h"
#include "ops/cuda/gemm/sm90/wide_product.h"
#include "ops/cuda/gemm/tile/tile_product.h"

namespace shoal::ops::cuda {
namespace {

void run(Context& ctx, GemmKernel kernel, const Product& product, const float* snake_alpha) {
  const bool as_kept = kernel == GemmKernel::skinny || kernel == GemmKernel::swapped;
  if (is_narrow(product) && !as_kept) {
    const Workspace::Scope scope(*ctx.workspace);
    return run(ctx, kernel, widened(ctx, product), snake_alpha);
  }
  const auto must = [&](bool done) {
    CHECK(done, "the kernel chosen for ", product.rows, " rows is not there");
  };
  switch (kernel) {
    case GemmKernel::f32_few_rows:
      return f32_few_rows(ctx, product);
    case GemmKernel::f32_slices:
      return f32_slices(ctx, product);
    case GemmKernel::f32_blocks:
      return f32_blocks(ctx, product);
    case GemmKernel::tf32_few_rows:
      return tf32_few_rows(ctx, product);
    case GemmKernel::tf32_slices:
      return tf32_slices(ctx, product);
    case GemmKernel::tf32_blocks:
      return tf32_blocks(ctx, product);
    case GemmKernel::skinny:
      return must(skinny_product(ctx, product, product.format.operand, nullptr));
    case GemmKernel::swapped:
      return must(swapped_product(ctx, product));
    case GemmKernel::resident:
      return must(resident_product(ctx, product));
    case GemmKernel::broad:
      return must(broad_product(ctx, product));
    case GemmKernel::wide:
      return wide_product_by(ctx, product, choose_wide(product.shape, product.rows, machine_of(ctx)),
                             snake_alpha);
    case GemmKernel::tile:
      return tile_product_by(ctx, product, choose_tile(product.shape, product.rows, machine_of(ctx)),
                             snake_alpha);
  }
}

Gemm facts_of(const Product& product, bool linear, const float* snake_alpha) {
  return {.shape = product.shape,
          .operand = product.format.operand,
          .form = form_of(product.format),
          .rows = product.rows,
          .linear = linear,
          .snake = snake_alpha != nullptr,
          .rows_in_place = product.taps.first_rows == nullptr,
          .plain = is_plain(product.shape, product.epilogue, snake_alpha),
          .activated = product.epilogue.activation != Activation::none};
}

}  // namespace

void run_convolution(Context& ctx, const Product& product, const float* snake_alpha) {
  const Gemm gemm = facts_of(product, /*linear=*/false, snake_alpha);
  run(ctx, choose(gemm, machine_of(ctx)).kernel, product, snake_alpha);
}

void run_linear(Context& ctx, const Product& product) {
  run(ctx, choose(facts_of(product, /*linear=*/true, nullptr), machine_of(ctx)).kernel, product, nullptr);
}

}  // namespace shoal::ops::cuda
