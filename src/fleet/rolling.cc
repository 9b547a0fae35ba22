#include "fleet/rolling.h"

#include <algorithm>

namespace shoal::fleet {
namespace {

bool is_ready(const RollingRestart::Worker& worker) { return worker.state == WorkerState::ready; }

}  // namespace

RollingRestart::RollingRestart(const std::vector<Worker>& before, std::vector<size_t> turns)
    : left_(std::move(turns)) {
  for (const Worker& worker : before) failures_.push_back(worker.failures);
}

void RollingRestart::note_failures(const std::vector<Worker>& now) {
  for (size_t i = 0; i < now.size(); ++i) {
    // A row that ended meanwhile counts no more.
    const bool has_failed = now[i].failures > failures_[i];
    failures_[i] = now[i].failures;
    if (!has_failed) continue;
    if (std::ranges::count(had_turn_, i) > 0)
      outcome_ = Outcome::failed;
    else if (std::erase(left_, i) > 0)
      had_turn_.push_back(i);
  }
}

std::optional<size_t> RollingRestart::take_turn(size_t index) {
  std::erase(left_, index);
  had_turn_.push_back(index);
  return index;
}

std::optional<size_t> RollingRestart::next(const std::vector<Worker>& now) {
  note_failures(now);
  if (outcome_ != Outcome::goes_on) return std::nullopt;
  const auto is_ready_at = [&](size_t index) { return is_ready(now[index]); };
  if (!std::ranges::all_of(had_turn_, is_ready_at)) return std::nullopt;
  const auto unready = std::ranges::find_if_not(left_, is_ready_at);
  if (unready != left_.end()) {
    const WorkerState state = now[*unready].state;
    if (state == WorkerState::draining || state == WorkerState::ending) return std::nullopt;
    return take_turn(*unready);
  }
  if (left_.empty()) {
    outcome_ = Outcome::done;
    return std::nullopt;
  }
  return std::ranges::all_of(now, is_ready) ? take_turn(left_.front()) : std::nullopt;
}

}  // namespace shoal::fleet
