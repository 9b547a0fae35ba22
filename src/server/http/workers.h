// Threads for work that would block a connection's thread: clips, files, long encodings, large bodies.
#pragma once

#include <boost/asio/async_result.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "server/http/task.h"

namespace shoal::server {

class Workers {
 public:
  explicit Workers(int threads) : pool_(static_cast<size_t>(threads)), turns_(pool_.get_executor()) {}
  ~Workers() { join(); }
  // Waits for all work; more must not come.
  void join() { pool_.join(); }

  // Runs `work` on a worker and resumes on `executor` with its result or exception. Objects that `work`
  // refers to must live until then: the awaiting coroutine holds them. The executor's context does not run
  // out of work meanwhile.
  template <typename Work>
  Task<std::invoke_result_t<Work>> run(Executor executor, Work work) {
    return run_on(pool_.get_executor(), executor, std::move(work));
  }
  // The same for work that takes seconds: such tasks run one after the other, so that the other workers stay
  // free for short ones.
  template <typename Work>
  Task<std::invoke_result_t<Work>> run_in_turn(Executor executor, Work work) {
    return run_on(turns_, executor, std::move(work));
  }

 private:
  using Pool = boost::asio::thread_pool;

  template <typename Target, typename Work>
  static Task<std::invoke_result_t<Work>> run_on(Target target, Executor executor, Work work);

  Pool pool_;
  boost::asio::strand<Pool::executor_type> turns_;
};

namespace detail {

// Outlives the coroutine that awaits it, which may be destroyed with its connection.
template <typename Work>
struct Job {
  using Result = std::invoke_result_t<Work>;
  using Stored = std::conditional_t<std::is_void_v<Result>, std::monostate, Result>;

  explicit Job(Work to_do) : work(std::move(to_do)) {}
  void do_it() noexcept {
    try {
      if constexpr (std::is_void_v<Result>) {
        work();
        value.emplace();
      } else {
        value.emplace(work());
      }
    } catch (...) {
      error = std::current_exception();
    }
  }

  Work work;
  std::optional<Stored> value;
  std::exception_ptr error;
};

}  // namespace detail

template <typename Target, typename Work>
Task<std::invoke_result_t<Work>> Workers::run_on(Target target, Executor executor, Work work) {
  const auto job = std::make_shared<detail::Job<Work>>(std::move(work));
  const auto token = boost::asio::use_awaitable_t<Executor>();
  // By reference: the frame is there until it is resumed, and g++ 12 destroys twice what a temporary lambda
  // in a co_await expression holds.
  co_await boost::asio::async_initiate<decltype(token), void()>(
      [&target, &job, &executor](auto resume) {
        boost::asio::post(target, [job = job, executor = executor, resume = std::move(resume),
                                   guard = boost::asio::make_work_guard(executor)]() mutable {
          job->do_it();
          // The exception belongs only to the coroutine before it resumes: otherwise two threads would share
          // the counter inside std::exception_ptr, which the thread sanitizer does not see.
          job.reset();
          boost::asio::post(executor, std::move(resume));
        });
      },
      token);
  if (job->error) std::rethrow_exception(job->error);
  if constexpr (!std::is_void_v<std::invoke_result_t<Work>>) co_return std::move(*job->value);
}

}  // namespace shoal::server
