// Formats of matrices of 16-bit operands as template arguments.
#pragma once

#include "ops/cuda/gemm/operands/products.h"
#include "ops/cuda/rows/with_type.cuh"

namespace shoal::ops::cuda {

// f<T, weights>() with the type of the operands and the form of the weights.
template <typename F>
auto with_weights(const MatrixFormat& format, F&& f) {
  return with_operand_type(format.operand, [&](auto type) {
    using T = decltype(type);
    switch (format.weights) {
      case DType::i8:
        return f.template operator()<T, TileWeights::int8>();
      case DType::f8:
        return f.template operator()<T, TileWeights::fp8>();
      case DType::u4:
        return f.template operator()<T, TileWeights::int4>();
      default:
        return f.template operator()<T, TileWeights::half>();
    }
  });
}

}  // namespace shoal::ops::cuda
