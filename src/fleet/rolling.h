// A rolling restart: whose turn it is. Decisions alone.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "fleet/watch.h"

namespace shoal::fleet {

// One worker after the other is asked to end, and the next not before all others are ready: never are fewer
// than all but one. A failure ends it, so that what fails once does not fail everywhere.
class RollingRestart {
 public:
  struct Worker {
    WorkerState state;
    int failures = 0;
  };
  enum class Outcome { goes_on, done, failed };

  explicit RollingRestart(std::vector<Worker> before) : before_(std::move(before)) {}

  // Who shall end now, given how all workers are; each answer is acted on.
  std::optional<size_t> next(const std::vector<Worker>& now);
  Outcome outcome() const { return outcome_; }

 private:
  std::vector<Worker> before_;
  size_t turn_ = 0;  // whoever comes before has had it
  Outcome outcome_ = Outcome::goes_on;
};

}  // namespace shoal::fleet
