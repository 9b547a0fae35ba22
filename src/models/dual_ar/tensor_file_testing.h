// Safetensors files for tests.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace shoal::dual_ar::testing {

class TensorFile {
 public:
  struct Entry {
    DType dtype;
    Shape shape;
    std::string bytes;
  };

  // dtype: f32, or bf16, to which the values are rounded.
  void add(const std::string& name, const Shape& shape, std::span<const float> values,
           DType dtype = DType::f32);
  void add(const std::string& name, const Shape& shape, std::span<const int32_t> values);
  Entry& at(const std::string& name) { return entries_.at(name); }
  void remove(const std::string& name) { entries_.erase(name); }

  // The whole file.
  std::string bytes() const;

 private:
  std::map<std::string, Entry> entries_;
};

}  // namespace shoal::dual_ar::testing
