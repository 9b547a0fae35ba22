#include "base/log.h"

#include <string>

#include "capi/call.h"

namespace {

static_assert(static_cast<int>(shoal::LogLevel::debug) == SHOAL_LOG_DEBUG);
static_assert(static_cast<int>(shoal::LogLevel::error) == SHOAL_LOG_ERROR);

}  // namespace

shoal_code shoal_set_log(shoal_log_function function, void* user, shoal_error* error) {
  return shoal::capi::call(error, [&] {
    shoal::LogSink sink;
    if (function)
      sink = [function, user](shoal::LogLevel level, std::string_view message) {
        function(user, static_cast<int32_t>(level), std::string(message).c_str());
      };
    shoal::set_log_sink(std::move(sink));
  });
}
