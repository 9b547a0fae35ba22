#include "base/error.h"

#include <cstring>

namespace shoal {

std::string_view name_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
      return "invalid_argument";
    case ErrorCode::not_found:
      return "not_found";
    case ErrorCode::already_exists:
      return "already_exists";
    case ErrorCode::unsupported:
      return "unsupported";
    case ErrorCode::corrupt_file:
      return "corrupt_file";
    case ErrorCode::too_large:
      return "too_large";
    case ErrorCode::cancelled:
      return "cancelled";
    case ErrorCode::deadline_exceeded:
      return "deadline_exceeded";
    case ErrorCode::resource_exhausted:
      return "resource_exhausted";
    case ErrorCode::io:
      return "io";
    case ErrorCode::unavailable:
      return "unavailable";
    case ErrorCode::internal:
      return "internal";
  }
  return "internal";
}

bool is_callers_fault(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
    case ErrorCode::not_found:
    case ErrorCode::already_exists:
    case ErrorCode::unsupported:
    case ErrorCode::corrupt_file:
    case ErrorCode::too_large:
      return true;
    default:
      return false;
  }
}

namespace detail {

void check_failed(const char* condition, const char* file, int line, const std::string& message) {
  const char* slash = std::strrchr(file, '/');
  throw Error(ErrorCode::internal, concat("internal check failed at ", slash ? slash + 1 : file, ":", line,
                                          ": ", condition, message.empty() ? "" : ": ", message));
}

}  // namespace detail
}  // namespace shoal
