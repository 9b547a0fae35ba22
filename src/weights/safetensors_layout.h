// The places of tensors in a safetensors file to be written.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace shoal::weights {

struct NamedShape {
  std::string name;  // as check_tensor_name allows, unlike the others
  DType dtype = DType::f32;
  Shape shape;
};

struct SafetensorsLayout {
  std::string header;            // what the file begins with
  std::vector<int64_t> offsets;  // of each tensor, from the start of the file
  int64_t file_bytes = 0;

  // Wide types stand first, so that every tensor is aligned.
  static SafetensorsLayout of(std::span<const NamedShape> tensors);
};

}  // namespace shoal::weights
