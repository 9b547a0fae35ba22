// Shared by the ops of a build without CUDA.
#pragma once

#include "base/error.h"

namespace shoal::ops::cuda {

[[noreturn]] inline void unavailable(const char* op) {
  fail(ErrorCode::unavailable, op, ": this build has no CUDA backend");
}

}  // namespace shoal::ops::cuda
