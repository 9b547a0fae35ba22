#include "runtime/engine/failure.h"

#include <new>
#include <string>

namespace shoal::runtime {

Error error_without_fail(ErrorCode code, const char* message) noexcept {
  try {
    return {code, message};
  } catch (...) {
    return {code, std::string()};  // an empty string takes no memory
  }
}

Error to_error(const std::exception& error) noexcept {
  if (const auto* ours = dynamic_cast<const Error*>(&error))
    return error_without_fail(ours->code(), ours->what());
  if (dynamic_cast<const std::bad_alloc*>(&error))
    return error_without_fail(ErrorCode::resource_exhausted,
                              "memory ran out while the request was spoken; try again later");
  return error_without_fail(ErrorCode::internal, error.what());
}

Error to_error(const std::exception_ptr& error) noexcept {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& known) {
    return to_error(known);
  } catch (...) {
    return error_without_fail(ErrorCode::internal, "something that is not an exception was thrown");
  }
}

Error end_error(ErrorCode why) noexcept {
  return error_without_fail(
      why, why == ErrorCode::deadline_exceeded
               ? "the request's time was up before it was spoken (timeout, request_timeout_s)"
               : "the request was cancelled");
}

}  // namespace shoal::runtime
