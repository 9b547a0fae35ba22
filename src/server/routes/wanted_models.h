// Waiting for models that had been unloaded (model_ttl_s).
#pragma once

#include <exception>
#include <type_traits>

#include "server/http/exchange.h"
#include "server/routes/services.h"

namespace shoal::server {

// How often a request is begun again before it is told that its model is not there.
constexpr int kMostAttempts = 3;

// Whether what was thrown is Error(unavailable).
bool is_unavailable(const std::exception_ptr& thrown);

// Whether what was thrown may be because a model had been unloaded that is now being loaded again.
bool lacked_a_model(const Services& services, const std::exception_ptr& thrown);

// Waits until every model that somebody needs is in memory, or its load has failed. Throws
// Error(unavailable) when the server shuts down.
Task<> until_models_are_there(const Services& services, Executor executor);

// As Workers::run, or run_in_turn; begins `work` again when it lacked a model that had been unloaded.
template <typename Work>
Task<std::invoke_result_t<Work>> run_with_models(Services& services, Executor executor, Work work,
                                                 bool in_turn = false) {
  std::invoke_result_t<Work> result;
  for (int attempt = 1;; ++attempt) {
    std::exception_ptr thrown;
    try {
      if (in_turn)
        result = co_await services.workers.run_in_turn(executor, work);
      else
        result = co_await services.workers.run(executor, work);
    } catch (...) {
      thrown = std::current_exception();
    }
    if (!thrown) co_return result;
    if (attempt == kMostAttempts || !lacked_a_model(services, thrown)) std::rethrow_exception(thrown);
    co_await until_models_are_there(services, executor);
  }
}

}  // namespace shoal::server
