// Which chunks of text a model speaks together, and when. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace shoal::runtime {

// A chunk that could be spoken now. Times are those of one clock.
struct WaitingChunk {
  uint64_t request = 0;
  int64_t index = 0;       // of the chunk in its request
  int64_t arrival_us = 0;  // since when it could be spoken
  // When its listener wants it: a request's first chunk at its arrival, a later one when the sound that was
  // delivered before runs dry.
  int64_t due_us = 0;
  // How much later than others that are due it takes its turn: grows with the requests of its own client that
  // waited when it came, so that a client with many of them does not stand before all others.
  int64_t turn_us = 0;
  int64_t frames = 1;  // that it is expected to take, at least 1
};

struct BatchLimits {
  int64_t max_batch = 1;   // chunks of one batch
  int64_t max_frames = 1;  // of one batch; a longer chunk runs alone
  // What is not due yet joins what is while the batch has at most so many frames: as many as cost a device
  // that is not full next to nothing.
  int64_t spare_frames = 0;
  int64_t min_wait_us = 0, max_wait_us = 0;
  double arrivals_per_s = 0;  // of chunks, lately (ArrivalRate)
};

// Either a batch to run now, or a time to wait for; nothing of both when nothing waits.
struct BatchPlan {
  std::vector<size_t> run;    // indices of chunks, the first one due first
  int64_t wait_until_us = 0;  // ask again then, or when something arrives
};

// Chunks due within this of each other are equally due.
inline constexpr int64_t kEquallyDueUs = 50'000;

// The first in turn always goes, by due_us + turn_us, so that nobody starves: later arrivals are later.
// Beside it go, while limits allow: those equally due, the most similar in length first, since a batch takes
// as many steps as its longest chunk; then others that are due, the earliest first; then what is not due yet,
// up to spare_frames, or to max_frames when nothing is due. Ties by request and index.
//
// A batch that is not full waits for company until adaptive_wait_us after the oldest arrival of all, so not
// at all where one has waited that long already, as those have that came while a batch ran.
BatchPlan plan_batch(std::span<const WaitingChunk> waiting, const BatchLimits& limits, int64_t now_us);

// How long `chunks` wait for more: until the batch is expected to be full, where at least one arrival is
// expected within max_wait_us, otherwise min_wait_us. Between min_wait_us and max_wait_us: the shorter, the
// more of them there are.
int64_t adaptive_wait_us(int64_t chunks, const BatchLimits& limits);

// Arrivals a second, those of long ago forgotten.
class ArrivalRate {
 public:
  void add(int64_t now_us);
  double per_s(int64_t now_us) const;

 private:
  double weight_ = 0;  // of arrivals, each fading since
  int64_t last_us_ = 0;
};

}  // namespace shoal::runtime
