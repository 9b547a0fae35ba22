#include "fleet/desk.h"

#include <algorithm>
#include <utility>

namespace shoal::fleet {

int FleetStatus::ready() const {
  return static_cast<int>(std::ranges::count_if(workers, [](const WorkerStatus& worker) {
    return worker.gets_requests && worker.state == WorkerState::ready;
  }));
}

FleetStatus Desk::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

void Desk::ask(Order order) {
  std::future<std::optional<Refusal>> done;
  {
    const std::lock_guard lock(mutex_);
    if (is_closed_) fail(ErrorCode::unavailable, "the fleet ends");
    asked_.push_back({std::move(order), {}});
    done = asked_.back().done.get_future();
  }
  if (const std::optional<Refusal> refusal = done.get()) fail(refusal->code, refusal->why);
}

void Desk::publish(FleetStatus status) {
  const std::lock_guard lock(mutex_);
  status_ = std::move(status);
}

void Desk::obey(const std::function<void(const Order&)>& act) {
  std::deque<Asked> asked;
  {
    const std::lock_guard lock(mutex_);
    asked = std::exchange(asked_, {});
  }
  for (Asked& one : asked) {
    std::optional<Refusal> refusal;
    try {
      act(one.order);
    } catch (const Error& error) {
      refusal = {error.code(), error.what()};
    } catch (const std::exception& error) {
      refusal = {ErrorCode::internal, error.what()};
    }
    one.done.set_value(std::move(refusal));
  }
}

void Desk::close() {
  {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
  }
  obey([](const Order&) { fail(ErrorCode::unavailable, "the fleet ends"); });
}

}  // namespace shoal::fleet
