// Threads for what would hold up a connection's thread: clips, files, long encodings, large bodies.
#pragma once

#include <boost/asio/async_result.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "server/http/task.h"

namespace shoal::server {

class Workers {
 public:
  explicit Workers(int threads) : pool_(static_cast<size_t>(threads)) {}
  ~Workers() { pool_.join(); }

  // Runs `work` on a worker and resumes on `executor` with what it returned or threw. What `work` refers to must stay
  // until then: the awaiting coroutine holds it.
  template <typename Work>
  Task<std::invoke_result_t<Work>> run(Executor executor, Work work);

 private:
  boost::asio::thread_pool pool_;
};

template <typename Work>
Task<std::invoke_result_t<Work>> Workers::run(Executor executor, Work work) {
  using Result = std::invoke_result_t<Work>;
  using Stored = std::conditional_t<std::is_void_v<Result>, std::monostate, Result>;
  struct Outcome {
    std::optional<Stored> value;
    std::exception_ptr error;
  } outcome;
  const auto token = boost::asio::use_awaitable_t<Executor>();
  co_await boost::asio::async_initiate<decltype(token), void()>(
      [this, &outcome, &work, executor](auto resume) {
        boost::asio::post(pool_, [&outcome, &work, executor, resume = std::move(resume)]() mutable {
          try {
            if constexpr (std::is_void_v<Result>) {
              work();
              outcome.value.emplace();
            } else {
              outcome.value.emplace(work());
            }
          } catch (...) {
            outcome.error = std::current_exception();
          }
          boost::asio::post(executor, std::move(resume));
        });
      },
      token);
  if (outcome.error) std::rethrow_exception(outcome.error);
  if constexpr (!std::is_void_v<Result>) co_return std::move(*outcome.value);
}

}  // namespace shoal::server
