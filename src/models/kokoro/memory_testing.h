// How much more than their plan weights may take.
#pragma once

#include <algorithm>

#include "models/kokoro/inventory.h"
#include "tensor/dtype.h"

namespace shoal::kokoro {

// Bytes of all weights if every tensor of two dimensions or more were padded as a GPU's matrices of its kind
// are: to tiles of 8 outputs by 32 inputs in 16 bits, to 64 outputs in f32.
inline int64_t most_bytes_on_a_gpu(const Config& config, DType dtype) {
  const auto up = [](int64_t size, int64_t step) { return (size + step - 1) / step * step; };
  int64_t bytes = 0;
  for (const RequiredTensor& tensor : required_tensors(config)) {
    const Shape& shape = tensor.shape;
    if (shape.rank() < 2) {
      bytes += shape.elements() * 4;
      continue;
    }
    const int64_t taps = shape.elements() / (shape[0] * shape[1]);
    const int64_t f32 = up(shape[0], 64) * shape[1] * taps * 4;
    const int64_t narrow = up(shape[0], 8) * up(shape[1], 32) * taps * 2;
    bytes += tensor.part == "decoder" && dtype != DType::f32 ? std::max(narrow, shape.elements() * 4) : f32;
  }
  return bytes;
}

}  // namespace shoal::kokoro
