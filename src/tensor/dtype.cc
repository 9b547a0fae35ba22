#include "tensor/dtype.h"

#include "base/error.h"

namespace shoal {

int64_t size_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
    case DType::i64:
      return 8;
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::bf16:
    case DType::f16:
    case DType::i16:
      return 2;
    case DType::i8:
    case DType::u8:
    case DType::boolean:
    case DType::f8:
      return 1;
    case DType::u4:
      break;
  }
  fail(ErrorCode::internal, "no elements of whole bytes: dtype ", static_cast<int>(dtype));
}

std::string_view name_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "F32";
    case DType::f64:
      return "F64";
    case DType::bf16:
      return "BF16";
    case DType::f16:
      return "F16";
    case DType::i64:
      return "I64";
    case DType::i32:
      return "I32";
    case DType::i16:
      return "I16";
    case DType::i8:
      return "I8";
    case DType::u8:
      return "U8";
    case DType::boolean:
      return "BOOL";
    case DType::f8:
      return "F8_E4M3";
    case DType::u4:
      return "U4";
  }
  return "?";
}

}  // namespace shoal
