#include "capi/call.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <new>
#include <string_view>

#include "capi/running_threads.h"

namespace shoal::capi {
namespace {

static_assert(static_cast<int>(ErrorCode::invalid_argument) + 1 == SHOAL_INVALID_ARGUMENT);
static_assert(static_cast<int>(ErrorCode::corrupt_file) + 1 == SHOAL_CORRUPT_FILE);
static_assert(static_cast<int>(ErrorCode::resource_exhausted) + 1 == SHOAL_RESOURCE_EXHAUSTED);
static_assert(static_cast<int>(ErrorCode::internal) + 1 == SHOAL_INTERNAL);

// As many bytes of `text` as fit, without half a character at the end.
size_t whole_characters(std::string_view text, size_t room) {
  if (text.size() <= room) return text.size();
  size_t end = room;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return end;
}

}  // namespace

shoal_code code_of(ErrorCode code) { return static_cast<shoal_code>(code) + 1; }

shoal_code answer(shoal_error* error, shoal_code code, const char* message) noexcept {
  constexpr size_t kTextAt = offsetof(shoal_error, message);
  if (!error || error->size <= kTextAt) return code;
  const size_t room = std::min(error->size, sizeof(shoal_error)) - kTextAt - 1;
  const size_t length = whole_characters(message, room);
  error->code = code;
  error->reserved = 0;
  std::memcpy(error->message, message, length);
  error->message[length] = '\0';
  return code;
}

shoal_code answer_error(shoal_error* error, const Error& ended) noexcept {
  return answer(error, code_of(ended.code()), ended.what());
}

shoal_code answer_exception(shoal_error* error) noexcept {
  try {
    throw;
  } catch (const Error& known) {
    return answer_error(error, known);
  } catch (const std::bad_alloc&) {
    return answer(error, SHOAL_RESOURCE_EXHAUSTED, "memory ran out");
  } catch (const std::exception& foreign) {
    return answer(error, SHOAL_INTERNAL, foreign.what());
  } catch (...) {
    return answer(error, SHOAL_INTERNAL, "something that is not an exception was thrown");
  }
}

void check_not_forked() {
  if (in_child_of_running())
    fail(ErrorCode::unavailable,
         "this process was forked while an engine ran, whose threads exist only in the parent; fork before "
         "an engine starts, or start a new program (in Python: multiprocessing's \"spawn\")");
}

}  // namespace shoal::capi

int32_t shoal_abi_version() { return SHOAL_ABI_VERSION; }
const char* shoal_version() { return SHOAL_VERSION; }

const char* shoal_code_name(shoal_code code) {
  switch (code) {
    case SHOAL_OK:
      return "ok";
    case SHOAL_END:
      return "end";
    case SHOAL_NOT_YET:
      return "not_yet";
    default:
      if (code < SHOAL_INVALID_ARGUMENT || code > SHOAL_INTERNAL) return "unknown";
      return shoal::name_of(static_cast<shoal::ErrorCode>(code - 1)).data();
  }
}

int32_t shoal_is_callers_fault(shoal_code code) {
  return code >= SHOAL_INVALID_ARGUMENT && code <= SHOAL_INTERNAL &&
         shoal::is_callers_fault(static_cast<shoal::ErrorCode>(code - 1));
}
