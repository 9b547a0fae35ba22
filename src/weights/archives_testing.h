// For tests: builds checkpoint files byte by byte, so that each can be wrong in one chosen place.
#pragma once

#include <bit>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "weights/tensor_location.h"

namespace shoal::weights {

inline std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

template <typename T>
std::string little(T value) {
  std::string text;
  for (size_t i = 0; i < sizeof(T); ++i)
    text += static_cast<char>(static_cast<uint64_t>(value) >> (8 * i) & 0xff);
  return text;
}

// Length, header, data.
inline std::string safetensors_file(const std::string& header, const std::string& data) {
  return little<uint64_t>(header.size()) + header + data;
}

// One entry of a zip archive; the fields that differ from a plain stored entry can be set.
struct ZipPart {
  std::string name;
  std::string data;
  uint16_t method = 0;
  uint16_t flags = 0;
  std::optional<std::string> local_name = {};  // what the local header says instead
  std::optional<uint32_t> size = {};           // what the directory says instead
  std::optional<uint32_t> local_size = {};     // what the local header says instead
  std::optional<uint32_t> local_offset = {};   // where the directory says the local header is
  std::string extra = {};                      // of the directory
};

struct ZipEnd {
  std::optional<uint16_t> entries = {};
  std::optional<uint32_t> directory_offset = {};
  std::string before = {};  // between directory and end record
  std::string comment = {};
};

inline std::string zip_file(const std::vector<ZipPart>& parts, const ZipEnd& end = {}) {
  std::string file, directory;
  for (const ZipPart& part : parts) {
    const auto offset = static_cast<uint32_t>(file.size());
    const auto size = static_cast<uint32_t>(part.data.size());
    const std::string name = part.local_name.value_or(part.name);
    const uint32_t local = part.local_size.value_or(size), central = part.size.value_or(size);
    file += "PK\x03\x04" + little<uint16_t>(20) + little(part.flags) + little(part.method) +
            std::string(8, '\0') + little(local) + little(local) +
            little(static_cast<uint16_t>(name.size())) + little<uint16_t>(0) + name + part.data;
    directory += "PK\x01\x02" + little<uint16_t>(20) + little<uint16_t>(20) + little(part.flags) +
                 little(part.method) + std::string(8, '\0') + little(central) + little(central) +
                 little(static_cast<uint16_t>(part.name.size())) +
                 little(static_cast<uint16_t>(part.extra.size())) + std::string(10, '\0') +
                 little(part.local_offset.value_or(offset)) + part.name + part.extra;
  }
  const auto offset = static_cast<uint32_t>(file.size());
  const auto count = end.entries.value_or(static_cast<uint16_t>(parts.size()));
  return file + directory + end.before + "PK\x05\x06" + std::string(4, '\0') + little(count) + little(count) +
         little(static_cast<uint32_t>(directory.size())) + little(end.directory_offset.value_or(offset)) +
         little(static_cast<uint16_t>(end.comment.size())) + end.comment;
}

// Pickle snippets.
inline std::string pickle_text(const std::string& text) {
  return concat("X", little(static_cast<uint32_t>(text.size())), text);
}
inline std::string pickle_integer(int64_t value) { return std::string("\x8a\x08", 2) + little(value); }
inline std::string pickle_tuple(const std::vector<int64_t>& values) {
  std::string text = "(";
  for (int64_t value : values) text += pickle_integer(value);
  return text + "t";
}

// What torch.save writes for one tensor.
struct TorchTensor {
  std::string storage_key = "0";
  std::string storage_type = "FloatStorage";
  int64_t storage_elements = 0;
  int64_t offset = 0;
  std::vector<int64_t> shape = {};
  std::vector<int64_t> strides = {};
};

inline std::string pickle_tensor(const TorchTensor& tensor) {
  return concat("ctorch._utils\n_rebuild_tensor_v2\n((", pickle_text("storage"), "ctorch\n",
                tensor.storage_type, "\n", pickle_text(tensor.storage_key), pickle_text("cpu"),
                pickle_integer(tensor.storage_elements), "tQ", pickle_integer(tensor.offset),
                pickle_tuple(tensor.shape), pickle_tuple(tensor.strides), "\x89",
                "ccollections\nOrderedDict\n)RtR");
}

// {key: value, ...} of already pickled values, without PROTO and STOP.
inline std::string pickle_dict(const std::vector<std::pair<std::string, std::string>>& items) {
  std::string text = "}(";
  for (const auto& [key, value] : items) text += pickle_text(key) + value;
  return text + "u";
}

inline std::string pickle_file(const std::string& value) { return std::string("\x80\x02") + value + "."; }

// Values as the bytes of an array.
template <typename T>
std::string array_bytes(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

// {"w": 2x3 floats 0..5} as torch.save writes it.
inline std::string small_torch_file() {
  const TorchTensor tensor{.storage_elements = 6, .shape = {2, 3}, .strides = {3, 1}};
  return zip_file({{"m/data.pkl", pickle_file(pickle_dict({{"w", pickle_tensor(tensor)}}))},
                   {"m/byteorder", "little"},
                   {"m/data/0", array_bytes<float>({0, 1, 2, 3, 4, 5})},
                   {"m/version", "3\n"}});
}

// The header of a .npy array, padded as numpy does, then the data.
inline std::string npy_file(const std::string& dict, const std::string& data, char major = 1) {
  const size_t fixed = major == 1 ? 10 : 12;
  const std::string header = dict + std::string(63 - (fixed + dict.size()) % 64, ' ') + "\n";
  const std::string length = major == 1 ? little(static_cast<uint16_t>(header.size()))
                                        : little(static_cast<uint32_t>(header.size()));
  return concat("\x93NUMPY", major, '\0', length, header, data);
}
inline std::string npy_floats(const std::string& shape, const std::vector<float>& values) {
  return npy_file(concat("{'descr': '<f4', 'fortran_order': False, 'shape': ", shape, ", }"),
                  array_bytes(values));
}

// The code of the Error that `body` throws, or nothing. Any other exception escapes and fails the test.
inline std::optional<ErrorCode> code_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.code();
  }
  return std::nullopt;
}

// The message of the Error that `body` throws, or an empty string.
inline std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.message();
  }
  return {};
}

// Calls visit(bytes) with every proper prefix of `file`, then with every single bit flipped.
inline void damage(const std::string& file, const std::function<void(const std::string&)>& visit) {
  for (size_t length = 0; length < file.size(); ++length) visit(std::string(file, 0, length));
  for (size_t bit = 0; bit < file.size() * 8; ++bit) {
    std::string flipped = file;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    visit(flipped);
  }
}

}  // namespace shoal::weights
