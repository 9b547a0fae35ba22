// What a call throws, for tests.
#pragma once

#include <gtest/gtest.h>

#include "base/error.h"

namespace shoal {

// The Error that the call throws. If none, the test fails.
template <typename Call>
Error error_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return {ErrorCode::internal, ""};
}

}  // namespace shoal
