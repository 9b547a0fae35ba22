// For tests: the Error that a call throws.
#pragma once

#include <gtest/gtest.h>

#include "base/error.h"

namespace shoal::phonemes {

inline Error refusal(auto call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "not refused";
  return {ErrorCode::internal, ""};
}

}  // namespace shoal::phonemes
