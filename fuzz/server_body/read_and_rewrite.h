// What every reader of bodies promises, for the fuzzers: a tree that can be written and read again, or an
// error of the caller's kind that can be shown.
#pragma once

#include <cstdlib>
#include <string>
#include <string_view>

#include "base/printable.h"
#include "server/body/value.h"

namespace shoal::server {

template <typename Read, typename Write, typename ReadAgain>
void read_and_rewrite(const Read& read, const Write& write, const ReadAgain& read_again) {
  Value value;
  try {
    value = read();
  } catch (const BodyError& error) {
    const bool one_line = error.message().find('\n') == std::string::npos;
    if (!is_callers_fault(error.code()) || !one_line || !is_utf8(error.message())) std::abort();
    return;
  }
  if (read_again(write(value)) != value) std::abort();
}

}  // namespace shoal::server
