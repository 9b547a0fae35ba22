#include "server/routes/live_tasks.h"

#include <boost/asio/co_spawn.hpp>
#include <chrono>
#include <exception>
#include <utility>

namespace shoal::server {
namespace {

constexpr std::chrono::milliseconds kTick{500};

}  // namespace

void LiveTasks::spawn(Task<> task) {
  ++open_;
  boost::asio::co_spawn(executor_, std::move(task), [this](const std::exception_ptr&) {
    --open_;
    ended_.notify();
  });
}

Task<> LiveTasks::run(Task<> reader, std::function<void()> cancel) {
  std::exception_ptr thrown;
  try {
    co_await std::move(reader);
  } catch (...) {
    thrown = std::current_exception();
  }
  over_ = true;
  cancel();
  hurry();
  while (open_ > 0) co_await ended_.wait();
  if (thrown) std::rethrow_exception(thrown);
}

Task<bool> LiveTasks::tick() {
  if (!over_) co_await tick_.wait(kTick);
  co_return !over_;
}

Task<bool> goes_well(Task<> task) {
  try {
    co_await std::move(task);
  } catch (...) {
    co_return false;
  }
  co_return true;
}

}  // namespace shoal::server
