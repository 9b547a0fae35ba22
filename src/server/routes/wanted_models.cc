#include "server/routes/wanted_models.h"

#include <algorithm>

#include "base/error.h"
#include "server/routes/signal.h"

namespace shoal::server {
namespace {

// A load takes from tenths of a second to minutes: its end may be noticed so late.
constexpr std::chrono::milliseconds kGlance{20};

bool any_is_wanted(const Services& services) {
  return std::ranges::any_of(services.models.all(),
                             [](const ServedModel& model) { return model.engine->is_wanted(); });
}

}  // namespace

bool is_unavailable(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    return error.code() == ErrorCode::unavailable;
  } catch (...) {
    return false;
  }
}

bool lacked_a_model(const Services& services, const std::exception_ptr& thrown) {
  return is_unavailable(thrown) && any_is_wanted(services);
}

Task<> until_models_are_there(const Services& services, Executor executor) {
  Signal pause(executor);
  while (any_is_wanted(services)) {
    if (services.draining) fail(ErrorCode::unavailable, "the server is shutting down");
    co_await pause.wait(kGlance);
  }
}

}  // namespace shoal::server
