// Waking a coroutine from another one of the same thread.
#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>

#include "server/http/task.h"

namespace shoal::server {

// Signals that something has changed, not what: a waiter checks first, and again after every wait.
class Signal {
 public:
  explicit Signal(Executor executor) : timer_(executor, Clock::time_point::max()) {}

  Task<> wait() {
    co_await timer_.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable_t<Executor>()));
  }
  // Also returns after `patience`. For a signal with one waiter.
  Task<> wait(std::chrono::milliseconds patience) {
    timer_.expires_after(patience);
    co_await wait();
  }
  void notify() { timer_.cancel(); }

 private:
  using Clock = std::chrono::steady_clock;
  boost::asio::basic_waitable_timer<Clock, boost::asio::wait_traits<Clock>, Executor> timer_;
};

}  // namespace shoal::server
