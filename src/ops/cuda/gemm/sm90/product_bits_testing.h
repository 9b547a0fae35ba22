// A fixture of tests that hold one kind of product kernels to the bits of another.
#pragma once

#include "ops/cuda/gemm/sm90/wide_kernels_testing.h"
#include "ops/cuda/gemm/tile/tile_product.h"
#include "ops/linear.h"
#include "ops/product_testing.h"
#include "ops/step_graph.h"
#include "ops/transfer.h"

namespace shoal::ops::cuda {

// By the format of the weights: a MatrixFormat, or a DType.
template <typename Format>
class ProductBitsOf : public Sm90Test, public testing::WithParamInterface<Format> {
 protected:
  static MatrixFormat format() { return testing::WithParamInterface<Format>::GetParam(); }
  static DType dtype() { return format().operand; }

  void use(const MatrixShape& matrix) {
    shape_ = matrix;
    std::vector<float> w = random_values(matrix.outputs * matrix.depth, 2, 0.3f), up = w;
    std::ranges::reverse(up);
    const Shape size{matrix.outputs, matrix.depth};
    std::vector<float> bias = random_values(matrix.outputs, 3);
    weight_ = matrix.paired ? pack_gate_up(ctx(), view_of(w, size), view_of(up, size), format())
                            : pack_matrix(ctx(), view_of(w, size), view_of(bias, {matrix.outputs}), format());
    scale_ = put(random_values(matrix.outputs, 5), {matrix.outputs});
  }

  // The result of `multiply` on y, in separate rows: either with a stride that allows storing four outputs at
  // once, or not.
  template <typename Multiply>
  std::vector<float> result(int64_t rows, Multiply multiply) {
    const int64_t stride = apart_ ? (shape_.outputs + 11) / 8 * 8 : shape_.outputs + 5;
    const Tensor y = put(random_values(rows * stride, 6), {rows, stride}, y_dtype_);
    multiply(y.view().columns(0, shape_.outputs));
    return get(y);
  }
  // With every part of an epilogue (a pair has none); or, if y is overwritten, only a bias, or nothing.
  Product product_of(TensorView x, TensorView y) const {
    Product product{.shape = shape_,
                    .format = format(),
                    .weight = weight_.storage.view().data(),
                    .scales = scales_of(weight_),
                    .x = x.data(),
                    .x_stride = x.stride(0),
                    .rows = y.dim(0),
                    .taps = {},
                    .epilogue = {.y = y.data(), .y_stride = y.stride(0), .y_dtype = y_dtype_}};
    if (shape_.paired || bare_) return product;
    product.epilogue.bias = weight_.bias.as<float>();
    if (overwrites_) return product;
    product.epilogue.scale = scale_.as<float>();
    product.epilogue.activation = activation_;
    product.epilogue.accumulate = y_dtype_ == DType::f32;
    return product;
  }
  // x times another matrix, not paired, added to the same y by `multiply`.
  template <typename Multiply>
  std::vector<float> onto_y(const PackedMatrix& weight, TensorView x, Multiply multiply) {
    const Tensor y = put(random_values(x.dim(0) * weight.outputs, 6), {x.dim(0), weight.outputs});
    multiply(with_input(product_by(weight, x.dim(0), into(y, weight, {.accumulate = true})), x));
    return get(y);
  }
  // Of weights of fewer bits, once they are widened.
  void multiply_by_tiles(Product product) {
    const Workspace::Scope scope(*ctx().workspace);
    if (is_narrow(product)) product = widened(ctx(), product);
    tile_product_by(ctx(), product, choose_tile(shape_, product.rows, machine_of(ctx())));
  }
  std::vector<float> by_tiles(TensorView x) {
    return result(x.dim(0), [&](TensorView y) { multiply_by_tiles(product_of(x, y)); });
  }
  // broad_product or another that says whether it has done it.
  using Kernels = bool (*)(Context&, const Product&);
  std::vector<float> by(Kernels kernels, TensorView x) {
    return result(x.dim(0), [&](TensorView y) { EXPECT_TRUE(kernels(ctx(), product_of(x, y))); });
  }
  // Three products in a recorded step, one after the other, whose rows change between its replays.
  void expect_replays(Kernels kernels, int64_t rows) {
    ctx().graphs = &graphs();
    const auto random_rows = [&](uint64_t seed) {
      return put(random_values(rows * shape_.depth, seed), {rows, shape_.depth}, dtype());
    };
    const auto zeros = [&] {
      return put(std::vector<float>(static_cast<size_t>(rows * shape_.outputs)), {rows, shape_.outputs});
    };
    const Tensor x = random_rows(1), y = zeros();
    for (uint64_t seed = 1; seed <= 6; ++seed) {
      const Tensor other = random_rows(seed % 2), want = zeros();
      copy(other, x);
      fill_zero(ctx(), y);
      run_step(ctx(), {.owner = this, .rows = rows}, [&] {
        for (int i = 0; i < 3; ++i) EXPECT_TRUE(kernels(ctx(), product_of(x, y)));
      });
      for (int i = 0; i < 3; ++i) multiply_by_tiles(product_of(other, want));
      expect_same_bits(get(y), get(want));
    }
  }

  MatrixShape shape_;
  bool apart_ = false;  // by a multiple of eight outputs
  bool overwrites_ = false, bare_ = false;
  DType y_dtype_ = DType::f32;
  Activation activation_ = Activation::none;
  PackedMatrix weight_;
  Tensor scale_;
};
using ProductBits = ProductBitsOf<DType>;

}  // namespace shoal::ops::cuda
