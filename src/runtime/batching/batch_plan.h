// Which chunks of text a model speaks together, and when. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace shoal::runtime {

// A chunk that could be spoken now. All times are of one clock.
struct WaitingChunk {
  uint64_t request = 0;
  int64_t index = 0;       // of the chunk in its request
  int64_t arrival_us = 0;  // since when it could be spoken
  // When its listener needs it: a request's first chunk at its arrival, a later one when the delivered sound
  // runs dry.
  int64_t due_us = 0;
  // How much later than other due chunks it takes its turn. It grows with the number of requests of the same
  // client that were waiting when it arrived, so that a client with many requests does not block all others.
  int64_t turn_us = 0;
  int64_t frames = 1;  // that it is expected to take, at least 1
};

struct BatchLimits {
  int64_t max_batch = 1;   // chunks of one batch
  int64_t max_frames = 1;  // of one batch; a longer chunk runs alone
  // Chunks that are not due yet join the due ones while the batch has at most this many frames: extra frames
  // cost almost nothing on a device that is not full.
  int64_t spare_frames = 0;
  int64_t min_wait_us = 0, max_wait_us = 0;
  double arrivals_per_s = 0;  // of chunks, lately (ArrivalRate)
};

// Either a batch to run now or a time to wait until; neither when no chunk waits.
struct BatchPlan {
  std::vector<size_t> run;    // indices of chunks, the first one due first
  int64_t wait_until_us = 0;  // ask again then, or when something arrives
};

// Chunks due within this of each other are equally due.
inline constexpr int64_t kEquallyDueUs = 50'000;

// The first in turn, by due_us + turn_us, always runs; later arrivals have later turns, so nobody starves.
// Within the limits these join it: first chunks that are equally due, the most similar in length first,
// because a batch takes as many steps as its longest chunk; then other due chunks, the earliest first; then
// chunks that are not due yet, up to spare_frames, or up to max_frames when nothing is due. Ties by request
// and index.
//
// A batch that is not full waits for more chunks until adaptive_wait_us after the oldest arrival. It does not
// wait at all if a chunk has waited that long already, as chunks that arrived while a batch ran have.
BatchPlan plan_batch(std::span<const WaitingChunk> waiting, const BatchLimits& limits, int64_t now_us);

// How long `chunks` wait for more: until the batch is expected to be full, where at least one arrival is
// expected within max_wait_us, otherwise min_wait_us. Between min_wait_us and max_wait_us: the shorter, the
// more of them there are.
int64_t adaptive_wait_us(int64_t chunks, const BatchLimits& limits);

// Arrivals per second; old arrivals are forgotten.
class ArrivalRate {
 public:
  void add(int64_t now_us);
  double per_s(int64_t now_us) const;

 private:
  double weight_ = 0;  // of arrivals, each fading since
  int64_t last_us_ = 0;
};

}  // namespace shoal::runtime
