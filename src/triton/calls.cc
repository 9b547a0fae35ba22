#include "triton/calls.h"

#include "base/error.h"

namespace shoal::triton {

TRITONSERVER_Error_Code code_of(shoal_code code) {
  switch (code) {
    case SHOAL_INVALID_ARGUMENT:
    case SHOAL_TOO_LARGE:
    case SHOAL_CORRUPT_FILE:
    case SHOAL_ALREADY_EXISTS:
      return TRITONSERVER_ERROR_INVALID_ARG;
    case SHOAL_NOT_FOUND:
      return TRITONSERVER_ERROR_NOT_FOUND;
    case SHOAL_UNSUPPORTED:
      return TRITONSERVER_ERROR_UNSUPPORTED;
    case SHOAL_CANCELLED:
      return TRITONSERVER_ERROR_CANCELLED;
    case SHOAL_DEADLINE_EXCEEDED:
    case SHOAL_RESOURCE_EXHAUSTED:
    case SHOAL_UNAVAILABLE:
      return TRITONSERVER_ERROR_UNAVAILABLE;
    default:
      return TRITONSERVER_ERROR_INTERNAL;
  }
}

void check(TRITONSERVER_Error* error) {
  if (!error) return;
  const std::string message = TRITONSERVER_ErrorMessage(error);
  TRITONSERVER_ErrorDelete(error);
  throw Failure(TRITONSERVER_ERROR_INTERNAL, message);
}

void check(shoal_code code, const shoal_error& error) {
  if (code > SHOAL_OK) throw Failure(code_of(code), error.message);
}

TRITONSERVER_Error* current_error() {
  try {
    throw;
  } catch (const Failure& failure) {
    return TRITONSERVER_ErrorNew(failure.code(), failure.what());
  } catch (const Error& error) {
    const bool unsupported = error.code() == ErrorCode::unsupported;
    return TRITONSERVER_ErrorNew(
        unsupported ? TRITONSERVER_ERROR_UNSUPPORTED : TRITONSERVER_ERROR_INVALID_ARG,
        error.message().c_str());
  } catch (const std::exception& error) {
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL, error.what());
  }
}

void log_line(TRITONSERVER_LogLevel level, const std::string& line) {
  TRITONSERVER_Error* error = TRITONSERVER_LogMessage(level, "shoal", 0, line.c_str());
  if (error) TRITONSERVER_ErrorDelete(error);
}

}  // namespace shoal::triton
