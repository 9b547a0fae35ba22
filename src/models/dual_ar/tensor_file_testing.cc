#include "models/dual_ar/tensor_file_testing.h"

#include "base/bf16.h"
#include "base/error.h"
#include "weights/safetensors_layout.h"

namespace shoal::dual_ar::testing {

void TensorFile::add(const std::string& name, const Shape& shape, std::span<const float> values,
                     DType dtype) {
  CHECK(std::ssize(values) == shape.elements(), name, ": ", values.size(), " values for ", shape);
  Entry& entry = entries_[name] = {dtype, shape, {}};
  for (const float value : values) {
    const Bf16 rounded = float_to_bf16(value);
    const void* const bytes = dtype == DType::bf16 ? static_cast<const void*>(&rounded) : &value;
    entry.bytes.append(static_cast<const char*>(bytes), static_cast<size_t>(size_of(dtype)));
  }
}

void TensorFile::add(const std::string& name, const Shape& shape, std::span<const int32_t> values) {
  CHECK(std::ssize(values) == shape.elements(), name, ": ", values.size(), " values for ", shape);
  const auto* const bytes = reinterpret_cast<const char*>(values.data());
  entries_[name] = {DType::i32, shape, std::string(bytes, bytes + values.size_bytes())};
}

std::string TensorFile::bytes() const {
  std::vector<weights::NamedShape> shapes;
  for (const auto& [name, entry] : entries_) shapes.push_back({name, entry.dtype, entry.shape});
  const auto layout = weights::SafetensorsLayout::of(shapes);
  std::string file = layout.header;
  file.resize(static_cast<size_t>(layout.file_bytes));
  auto offset = layout.offsets.begin();
  for (const auto& [name, entry] : entries_)
    file.replace(static_cast<size_t>(*offset++), entry.bytes.size(), entry.bytes);
  return file;
}

}  // namespace shoal::dual_ar::testing
