// Number formats as template arguments. The only place that turns one into a type: a new format is added
// here, and every dtype without a kernel is refused.
#pragma once

#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "base/error.h"
#include "tensor/dtype.h"

namespace shoal::ops::cuda {

// f(T()) with the type that tensor cores multiply: bf16 or f16.
template <typename F>
auto with_operand_type(DType dtype, F&& f) {
  CHECK(dtype == DType::bf16 || dtype == DType::f16, "expected BF16 or F16, got ", name_of(dtype));
  return dtype == DType::bf16 ? f(__nv_bfloat16()) : f(__half());
}

// f(T()) with the type of stored values: f32, bf16 or f16.
template <typename F>
auto with_float_type(DType dtype, F&& f) {
  return dtype == DType::f32 ? f(float()) : with_operand_type(dtype, f);
}

// f(T()) with the type of the values of KV pages: those of with_float_type, or uint8_t.
template <typename F>
auto with_page_type(DType dtype, F&& f) {
  return dtype == DType::i8 ? f(uint8_t()) : with_float_type(dtype, f);
}

}  // namespace shoal::ops::cuda
