// Compiled where TRITON_INCLUDE names Triton's real headers: a declaration or value of ours that differs is
// an error here.
#include <triton/core/tritonbackend.h>
#define SHOAL_TRITON_REAL_HEADERS
#include "triton/triton_api.h"

static_assert(TRITONSERVER_TYPE_INVALID == 0 && TRITONSERVER_TYPE_INT32 == 8 &&
              TRITONSERVER_TYPE_FP32 == 11 && TRITONSERVER_TYPE_BYTES == 13);
static_assert(TRITONSERVER_MEMORY_CPU == 0 && TRITONSERVER_MEMORY_GPU == 2 &&
              TRITONBACKEND_ARTIFACT_FILESYSTEM == 0);
static_assert(TRITONSERVER_PARAMETER_STRING == 0 && TRITONSERVER_PARAMETER_INT == 1 &&
              TRITONSERVER_PARAMETER_BOOL == 2 && TRITONSERVER_PARAMETER_DOUBLE == 3);
static_assert(TRITONSERVER_LOG_INFO == 0 && TRITONSERVER_LOG_WARN == 1 && TRITONSERVER_LOG_ERROR == 2 &&
              TRITONSERVER_LOG_VERBOSE == 3);
static_assert(TRITONSERVER_ERROR_INTERNAL == 1 && TRITONSERVER_ERROR_NOT_FOUND == 2 &&
              TRITONSERVER_ERROR_INVALID_ARG == 3 && TRITONSERVER_ERROR_UNAVAILABLE == 4 &&
              TRITONSERVER_ERROR_UNSUPPORTED == 5 && TRITONSERVER_ERROR_CANCELLED == 7);
static_assert(kTritonReleaseAll == TRITONSERVER_REQUEST_RELEASE_ALL);
static_assert(kTritonFinalResponse == TRITONSERVER_RESPONSE_COMPLETE_FINAL);
static_assert(kTritonMajor == TRITONBACKEND_API_VERSION_MAJOR &&
              kTritonMinor <= TRITONBACKEND_API_VERSION_MINOR);
