#include "fleet/rolling.h"

#include <algorithm>

namespace shoal::fleet {

std::optional<size_t> RollingRestart::next(const std::vector<Worker>& now) {
  for (size_t i = 0; i < now.size(); ++i)
    if (now[i].failures > before_[i].failures) outcome_ = Outcome::failed;
  if (outcome_ != Outcome::goes_on) return std::nullopt;
  // Rows of failures that ended meanwhile count no more.
  for (size_t i = 0; i < now.size(); ++i) before_[i].failures = now[i].failures;
  const bool all_ready =
      std::ranges::all_of(now, [](const Worker& worker) { return worker.state == WorkerState::ready; });
  if (!all_ready) return std::nullopt;
  if (turn_ == now.size()) {
    outcome_ = Outcome::done;
    return std::nullopt;
  }
  return turn_++;
}

}  // namespace shoal::fleet
