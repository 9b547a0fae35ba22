// A rolling restart: whose turn it is. Decisions alone.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "fleet/watch.h"

namespace shoal::fleet {

// One worker after the other is asked to end. First come those that are not ready anyway; of the others each
// waits until all are ready, so that never fewer than all but one are. A failure of one that has had its turn
// ends it, so that what fails once does not fail everywhere. One that fails by itself before has had it.
class RollingRestart {
 public:
  struct Worker {
    WorkerState state;
    int failures = 0;  // in a row
  };
  enum class Outcome { goes_on, done, failed };

  // turns: the workers, by index, that shall restart.
  RollingRestart(const std::vector<Worker>& before, std::vector<size_t> turns);

  // Who shall end now, given how all workers are; each answer is acted on. One that does not run is started.
  std::optional<size_t> next(const std::vector<Worker>& now);
  Outcome outcome() const { return outcome_; }
  const std::vector<size_t>& had_turn() const { return had_turn_; }

 private:
  void note_failures(const std::vector<Worker>& now);
  std::optional<size_t> take_turn(size_t index);

  std::vector<int> failures_;
  std::vector<size_t> left_, had_turn_;
  Outcome outcome_ = Outcome::goes_on;
};

}  // namespace shoal::fleet
