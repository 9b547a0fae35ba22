// Element types of tensors.
#pragma once

#include <cstdint>
#include <string_view>

namespace shoal {

// f8: e4m3 without infinities (base/e4m3.h). u4: two a byte, the first in the low bits; names the format of a
// matrix, whose tensor is u8.
enum class DType : uint8_t { f32, f64, bf16, f16, i64, i32, i16, i8, u8, boolean, f8, u4 };

// Bytes of one element. u4 has none: Error(internal).
int64_t size_of(DType dtype);

// "F32", "BF16", "F8_E4M3", ... : the names used by safetensors headers, and by our messages.
std::string_view name_of(DType dtype);

}  // namespace shoal
