// Throwing shoal::Error (include/shoal/error.h), and CHECK.
#pragma once

#include <sstream>
#include <string>

#include "shoal/error.h"

namespace shoal {

// Joins its arguments with operator<<: concat("expected ", 3, ", got ", n).
template <typename... Parts>
std::string concat(const Parts&... parts) {
  std::ostringstream out;
  ((out << parts), ...);
  return out.str();
}

// Throws Error(code, concat(parts...)).
template <typename... Parts>
[[noreturn]] void fail(ErrorCode code, const Parts&... parts) {
  throw Error(code, concat(parts...));
}

namespace detail {
[[noreturn]] void check_failed(const char* condition, const char* file, int line, const std::string& message);
}  // namespace detail

// A broken promise between our own functions; on in release builds, throws Error(internal).
// CHECK(rows == y.dim(0), "rows ", rows, ", y ", y.shape());
#define CHECK(condition, ...)                                                                      \
  do {                                                                                             \
    if (!(condition)) [[unlikely]]                                                                 \
      ::shoal::detail::check_failed(#condition, __FILE__, __LINE__, ::shoal::concat(__VA_ARGS__)); \
  } while (false)

}  // namespace shoal
