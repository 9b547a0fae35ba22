#include "weights/safetensors.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/json.h"

namespace shoal::weights {
namespace {

// The format allows 100 MB, but parsed JSON can take forty times its text; a large model's header has 100 kB.
constexpr uint64_t kMaxHeaderBytes = uint64_t{16} << 20;
constexpr size_t kLengthBytes = 8;

std::optional<DType> dtype_of(std::string_view text) {
  for (DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16, DType::i64, DType::i32, DType::i16,
                      DType::i8, DType::u8, DType::boolean, DType::f8}) {
    if (name_of(dtype) == text) return dtype;
  }
  return std::nullopt;
}

uint64_t header_length(std::span<const std::byte> file, std::string_view name) {
  if (file.size() < kLengthBytes)
    fail(ErrorCode::corrupt_file, name, ": expected a safetensors file, found ", file.size(), " bytes");
  uint64_t length = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) length |= std::to_integer<uint64_t>(file[i]) << (8 * i);
  if (length > file.size() - kLengthBytes)
    fail(ErrorCode::corrupt_file, name, ": not a safetensors file, or cut short: a header of ", length,
         " bytes is announced in a file of ", file.size());
  if (length > kMaxHeaderBytes)
    fail(ErrorCode::too_large, name, ": a safetensors header of ", length, " bytes, at most ",
         kMaxHeaderBytes, " are accepted");
  return length;
}

// The members of an array of integers; `what` names it.
std::vector<int64_t> integers(const Json* json, std::string_view name, std::string_view tensor,
                              std::string_view what) {
  std::vector<int64_t> values;
  if (json && json->is_array()) {
    for (const Json& item : json->as_array()) {
      if (!item.is_integer()) break;
      values.push_back(item.as_integer());
    }
    if (values.size() == json->as_array().size()) return values;
  }
  fail(ErrorCode::corrupt_file, name, ": tensor ", printable(tensor), ": ", what,
       " must be an array of integers");
}

// One entry of the header. data_bytes: size of the data part, which starts at data_start.
TensorLocation location_of(const std::string& tensor, const Json& entry, int64_t data_start,
                           int64_t data_bytes, std::string_view name) {
  check_tensor_name(tensor, name);
  const Json* dtype_text = entry.is_object() ? entry.find("dtype") : nullptr;
  if (!dtype_text || !dtype_text->is_string())
    fail(ErrorCode::corrupt_file, name, ": tensor ", printable(tensor), " has no dtype");
  const std::optional<DType> dtype = dtype_of(dtype_text->as_string());
  if (!dtype)
    fail(ErrorCode::unsupported, name, ": tensor ", printable(tensor), " has the unknown dtype ",
         printable(dtype_text->as_string()));

  TensorLocation location;
  location.name = tensor;
  location.dtype = *dtype;
  location.shape = checked_shape(integers(entry.find("shape"), name, tensor, "shape"), *dtype, name, tensor);
  location.strides = dense_strides(location.shape);
  const std::vector<int64_t> offsets = integers(entry.find("data_offsets"), name, tensor, "data_offsets");
  if (offsets.size() != 2 || offsets[0] < 0 || offsets[1] < offsets[0] || offsets[1] > data_bytes)
    fail(ErrorCode::corrupt_file, name, ": tensor ", printable(tensor), ": data_offsets do not lie in the ",
         data_bytes, " bytes of data");
  if (offsets[1] - offsets[0] != location.bytes())
    fail(ErrorCode::corrupt_file, name, ": tensor ", printable(tensor), ": ", name_of(*dtype), " ",
         location.shape, " takes ", location.bytes(), " bytes, data_offsets give ", offsets[1] - offsets[0]);
  location.offset = data_start + offsets[0];
  return location;
}

// Sorted by offset, every tensor must begin where the one before it ended.
void check_cover(const std::vector<TensorLocation>& tensors, int64_t data_start, int64_t file_bytes,
                 std::string_view name) {
  std::vector<const TensorLocation*> sorted;
  sorted.reserve(tensors.size());
  for (const TensorLocation& tensor : tensors) sorted.push_back(&tensor);
  std::ranges::sort(sorted, [](const TensorLocation* a, const TensorLocation* b) {
    return a->offset != b->offset ? a->offset < b->offset : a->bytes() < b->bytes();
  });
  int64_t expected = data_start;
  for (const TensorLocation* tensor : sorted) {
    if (tensor->offset != expected)
      fail(ErrorCode::corrupt_file, name, ": tensor ", printable(tensor->name),
           tensor->offset < expected ? " overlaps another tensor" : " follows a hole in the data");
    expected += tensor->bytes();
  }
  if (expected != file_bytes)
    fail(ErrorCode::corrupt_file, name, ": ", file_bytes - expected, " bytes after the last tensor");
}

}  // namespace

std::vector<TensorLocation> parse_safetensors(std::span<const std::byte> file, std::string_view name) {
  const uint64_t length = header_length(file, name);
  const std::string_view text(reinterpret_cast<const char*>(file.data()) + kLengthBytes, length);
  if (!text.starts_with('{'))
    fail(ErrorCode::corrupt_file, name, ": the safetensors header is not a JSON object");
  const Json header = Json::parse(text, name);
  const auto data_start = static_cast<int64_t>(kLengthBytes + length);
  const auto file_bytes = static_cast<int64_t>(file.size());

  std::vector<TensorLocation> tensors;
  for (const auto& [tensor, entry] : header.as_object()) {
    if (tensor == "__metadata__") continue;
    tensors.push_back(location_of(tensor, entry, data_start, file_bytes - data_start, name));
  }
  check_cover(tensors, data_start, file_bytes, name);
  return tensors;
}

}  // namespace shoal::weights
