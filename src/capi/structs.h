// Structs that cross the interface: their first member says how much of them the caller knows.
#pragma once

#include <algorithm>
#include <cstring>
#include <span>
#include <type_traits>

#include "base/error.h"

namespace shoal::capi {

// Throws Error(invalid_argument) unless a struct can have this size.
inline void check_size(size_t size, size_t alignment, const char* name) {
  if (size < sizeof(size_t) || size % alignment != 0)
    fail(ErrorCode::invalid_argument, name, ": expected its size in the first member, got ", size);
}

// What a caller of any version gave, with zeros for fields that it does not know. Throws Error:
// invalid_argument (NULL, size), unsupported (a newer caller set fields that are unknown here).
template <typename Struct>
Struct read_struct(const Struct* given, const char* name) {
  static_assert(std::is_trivially_copyable_v<Struct> && offsetof(Struct, size) == 0);
  if (!given) fail(ErrorCode::invalid_argument, name, ": expected a struct, got NULL");
  check_size(given->size, alignof(Struct), name);
  const std::span bytes(reinterpret_cast<const unsigned char*>(given), given->size);
  const size_t known = std::min(bytes.size(), sizeof(Struct));
  const auto unknown = bytes.subspan(known);
  if (!std::ranges::all_of(unknown, [](unsigned char byte) { return byte == 0; }))
    fail(ErrorCode::unsupported, name, ": this library is older than its caller and knows ", sizeof(Struct),
         " of its ", bytes.size(), " bytes; leave the fields beyond them zero");
  Struct read{};
  std::memcpy(&read, bytes.data(), known);
  return read;
}

// Gives a caller as much as it knows, and zeros beyond what is known here. Throws as read_struct, but for
// unsupported.
template <typename Struct>
void write_struct(Struct* into, Struct value, const char* name) {
  static_assert(std::is_trivially_copyable_v<Struct> && offsetof(Struct, size) == 0);
  if (!into) fail(ErrorCode::invalid_argument, name, ": expected a struct, got NULL");
  check_size(into->size, alignof(Struct), name);
  value.size = into->size;
  const size_t known = std::min(into->size, sizeof(Struct));
  auto* const bytes = reinterpret_cast<unsigned char*>(into);
  std::memcpy(bytes, &value, known);
  std::memset(bytes + known, 0, value.size - known);
}

}  // namespace shoal::capi
