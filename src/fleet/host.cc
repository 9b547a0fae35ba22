#include "fleet/host.h"

#include <poll.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"

namespace shoal::fleet {

void Host::watch_for(std::vector<pollfd>& events) const {
  if (probe_.socket() >= 0) events.push_back({.fd = probe_.socket(), .events = probe_.events()});
}

bool Host::check() {
  const int64_t now = now_us();
  if (!probe_.is_under_way() && now - asked_us_ >= rules_.check_us) {
    probe_.begin(target_, now + rules_.check_timeout_us);
    asked_us_ = now;
  }
  const auto result = probe_.is_under_way() ? probe_.go_on(now) : std::nullopt;
  if (!result) return false;
  probe_.end();
  const WorkerState before = std::exchange(state_, state_after(*result));
  if (state_ == before) return false;
  const bool is_lost = state_ == WorkerState::unreachable;
  log(is_lost ? LogLevel::warning : LogLevel::info, plan_.name, ": ", name_of(state_));
  return is_lost;
}

WorkerState Host::state_after(CheckResult result) {
  silent_checks_ = result == CheckResult::silent ? silent_checks_ + 1 : 0;
  if (result == CheckResult::ready) return WorkerState::ready;
  if (result == CheckResult::unready) return WorkerState::unready;
  return silent_checks_ >= rules_.most_silent_checks ? WorkerState::unreachable : state_;
}

}  // namespace shoal::fleet
