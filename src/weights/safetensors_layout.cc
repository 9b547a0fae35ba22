#include "weights/safetensors_layout.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace shoal::weights {
namespace {

std::string quoted(const std::string& name) {
  std::string text = "\"";
  for (const char c : name) {
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text + '"';
}

}  // namespace

SafetensorsLayout SafetensorsLayout::of(std::span<const NamedShape> tensors) {
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](size_t i) { return size_of(tensors[i].dtype); });

  SafetensorsLayout layout{.offsets = std::vector<int64_t>(tensors.size())};
  std::string json = "{";
  int64_t at = 0;
  for (const size_t i : order) {
    const auto& [name, dtype, shape] = tensors[i];
    layout.offsets[i] = at;
    at += shape.elements() * size_of(dtype);
    json += concat(json.size() > 1 ? "," : "", quoted(name), ":{\"dtype\":\"", name_of(dtype),
                   "\",\"shape\":", shape, ",\"data_offsets\":[", layout.offsets[i], ",", at, "]}");
  }
  json += '}';
  json.resize((json.size() + 7) / 8 * 8, ' ');
  for (int i = 0; i < 8; ++i) layout.header += static_cast<char>(json.size() >> (8 * i) & 0xff);
  layout.header += json;
  const int64_t start = std::ssize(layout.header);
  for (int64_t& offset : layout.offsets) offset += start;
  layout.file_bytes = start + at;
  return layout;
}

}  // namespace shoal::weights
