#include "ops/cuda/device/alignment.h"
#include "ops/cuda/device/launch.cuh"
#include "ops/cuda/gemm/choose.h"
#include "ops/cuda/gemm/operands/products.h"
#include "ops/cuda/gemm/run.h"
#include "ops/cuda/gemm/skinny/skinny_product.h"
#include "ops/cuda_backend.h"

namespace shoal::ops::cuda {
namespace {

// f32 rows as the skinny kernel loads them.
bool is_vectors(TensorView x) { return is_aligned(x.data()) && x.stride(0) % 4 == 0 && x.dim(1) % 8 == 0; }

// Whether a kernel takes f32 x as it is, and rounds it after the norm.
bool rounds_by_itself(Context& ctx, const Product& product, TensorView x, const RmsNorm* norm) {
  if (x.dtype() != DType::f32 || !is_vectors(x) || (norm && !is_aligned(norm->weight.data()))) return false;
  const Gemm gemm{.shape = product.shape,
                  .operand = product.format.operand,
                  .form = form_of(product.format),
                  .rows = product.rows,
                  .f32_rows = true,
                  .norm = norm != nullptr};
  return choose(gemm, machine_of(ctx)).rounds;
}

void half_product(Context& ctx, const Product& product, TensorView x, const RmsNorm* norm, TensorView sums) {
  if (sums.empty() && rounds_by_itself(ctx, product, x, norm)) {
    const bool done = skinny_product(ctx, with_input(product, x), DType::f32, norm);
    CHECK(done, "the skinny kernel was chosen for ", product.rows, " rows");
    return;
  }
  Workspace::Scope scope(*ctx.workspace);
  if (norm || !is_product_operand(x, product.format.operand))
    x = product_operand(ctx, x, product.format.operand, norm, sums);
  run_linear(ctx, with_input(product, x));
}

void multiply(Context& ctx, TensorView x, const PackedMatrix& weight, const MatrixShape& shape,
              const ProductEpilogue& epilogue, const RmsNorm* norm = nullptr, TensorView sums = {}) {
  Product product = product_by(weight, x.dim(0), epilogue);
  product.shape = shape;
  if (weight.format.operand != DType::f32) return half_product(ctx, product, x, norm, sums);
  if (!sums.empty()) add_sums(ctx, sums, x);
  Workspace::Scope scope(*ctx.workspace);
  if (norm || !is_product_operand(x, DType::f32)) x = product_operand(ctx, x, DType::f32, norm);
  run_linear(ctx, with_input(product, x));
}

}  // namespace

void linear(Context& ctx, TensorView x, const PackedMatrix& weight, TensorView y, const Epilogue& epilogue) {
  multiply(ctx, x, weight, shape_of(weight), into(y, weight, epilogue));
}

void linear_swiglu(Context& ctx, TensorView x, const PackedMatrix& gate_up, TensorView y) {
  multiply(ctx, x, gate_up, shape_of(gate_up, true), into(y, gate_up));
}

void norm_linear(Context& ctx, TensorView x, const RmsNorm& norm, const PackedMatrix& weight, TensorView y,
                 TensorView sums) {
  multiply(ctx, x, weight, shape_of(weight), into(y, weight), &norm, sums);
}

void norm_swiglu(Context& ctx, TensorView x, const RmsNorm& norm, const PackedMatrix& gate_up, TensorView y,
                 TensorView sums) {
  multiply(ctx, x, gate_up, shape_of(gate_up, true), into(y, gate_up), &norm, sums);
}

}  // namespace shoal::ops::cuda
