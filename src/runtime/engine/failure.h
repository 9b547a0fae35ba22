// Converts an exception to the Error that a request ends with.
#pragma once

#include <exception>

#include "base/error.h"

namespace shoal::runtime {

// std::bad_alloc becomes resource_exhausted, foreign exceptions internal. Never throws: without memory for
// the message it is empty.
Error to_error(const std::exception& error) noexcept;
Error to_error(const std::exception_ptr& error) noexcept;

// Its message is empty if there is no memory for it.
Error error_without_fail(ErrorCode code, const char* message) noexcept;

// Of a request that ended because of its caller: cancelled, deadline_exceeded.
Error end_error(ErrorCode why) noexcept;

}  // namespace shoal::runtime
