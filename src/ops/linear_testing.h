// Shared by the tests of linear, of SwiGLU and of norms before products.
#pragma once

#include "ops/linear.h"
#include "ops/product_testing.h"

namespace shoal::ops {

struct LinearSize {
  int64_t rows, outputs, depth;
};

inline std::ostream& operator<<(std::ostream& out, const LinearSize& size) {
  return out << size.rows << " x " << size.outputs << " x " << size.depth;
}

class LinearTest : public ProductTest {
 protected:
  struct Operands {
    std::vector<float> x, w, bias;
  };

  static Operands random_operands(LinearSize size) {
    const auto seed = static_cast<unsigned>(size.rows * 7 + size.outputs * 3 + size.depth);
    return {random_values(size.rows * size.depth, seed),
            random_values(size.outputs * size.depth, seed + 1, 0.3f), random_values(size.outputs, seed + 2)};
  }
  PackedMatrix pack(Operands& o, LinearSize size) {
    return pack_matrix(ctx(), view_of(o.w, {size.outputs, size.depth}),
                       o.bias.empty() ? TensorView() : view_of(o.bias, {size.outputs}), dtype());
  }
  PackedMatrix pack_pair(std::vector<float>& gate, std::vector<float>& up, Shape shape) {
    return pack_gate_up(ctx(), view_of(gate, shape), view_of(up, shape), dtype());
  }

  // y: what the result's memory holds before.
  std::vector<float> run(TensorView x, const PackedMatrix& weight, const Epilogue& epilogue = {},
                         std::vector<float> y = {}) {
    y.resize(static_cast<size_t>(x.dim(0) * weight.outputs), NAN);
    const Tensor out = put(y, {x.dim(0), weight.outputs});
    linear(ctx(), x, weight, out, epilogue);
    return get(out);
  }
  std::vector<float> run(Operands& o, LinearSize size, const Epilogue& epilogue = {}) {
    return run(put(o.x, {size.rows, size.depth}), pack(o, size), epilogue);
  }
  std::vector<float> run_pair(TensorView x, const PackedMatrix& pair, DType y_dtype = DType::f32) {
    const Tensor y = garbage({x.dim(0), pair.outputs}, y_dtype);
    linear_swiglu(ctx(), x, pair, y);
    return get(y);
  }

  static ref::Values expected(const Operands& o, int64_t depth) {
    return ref::linear(narrow(o.x), narrow(o.w), wide(o.bias), depth);
  }
  static ref::Values bound(const Operands& o, int64_t depth) {
    return bound_of(
        ref::linear(magnitudes(narrow(o.x)), magnitudes(narrow(o.w)), magnitudes(wide(o.bias)), depth),
        depth);
  }
};

}  // namespace shoal::ops
