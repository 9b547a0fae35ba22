// The frame of every function: what is thrown inside becomes a code and a sentence.
#pragma once

#include <type_traits>
#include <utility>

#include "base/error.h"
#include "shoal/shoal.h"

namespace shoal::capi {

shoal_code code_of(ErrorCode code);
// `error`, if it is not NULL: `code` with `message`, cut at the end of a character when it is too long.
// Returns `code`.
shoal_code answer(shoal_error* error, shoal_code code, const char* message) noexcept;
// Of the exception that is being handled.
shoal_code answer_exception(shoal_error* error) noexcept;
// Of an Error that a request ended with.
shoal_code answer_error(shoal_error* error, const Error& ended) noexcept;

// Throws Error(unavailable) in the child of a fork of a process with a running engine.
void check_not_forked();

// `work` returns nothing, or an outcome: SHOAL_OK, SHOAL_END, SHOAL_NOT_YET.
template <typename Work>
shoal_code call(shoal_error* error, Work&& work) noexcept {
  try {
    check_not_forked();
    if constexpr (std::is_void_v<decltype(work())>) {
      work();
      return answer(error, SHOAL_OK, "");
    } else {
      return answer(error, work(), "");
    }
  } catch (...) {
    return answer_exception(error);
  }
}

// An output parameter, emptied so that nobody reads what was there before an error. Throws
// Error(invalid_argument) for NULL.
template <typename T>
T& output(T* given, const char* name) {
  if (!given) fail(ErrorCode::invalid_argument, name, ": expected a place for the result, got NULL");
  if constexpr (std::is_pointer_v<T>) *given = nullptr;
  return *given;
}

// A text that must be given. Throws Error(invalid_argument) for NULL.
inline const char* text_of(const char* given, const char* name) {
  if (!given) fail(ErrorCode::invalid_argument, name, ": expected a text, got NULL");
  return given;
}
inline const char* text_or_empty(const char* given) { return given ? given : ""; }

}  // namespace shoal::capi
