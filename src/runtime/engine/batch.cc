#include "runtime/engine/batch.h"

#include <condition_variable>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>

#include "base/clock.h"
#include "runtime/engine/failure.h"
#include "runtime/speech_plan.h"

namespace shoal::runtime {
namespace {

constexpr std::chrono::milliseconds kNoDeadline = std::chrono::hours(24 * 365);

// Indices of speeches that have something to read, each once, in the order in which they became ready. A push
// cannot fail: the speech would never be read.
class ReadyQueue {
 public:
  explicit ReadyQueue(size_t speeches) : is_ready_(speeches), ring_(speeches) {}
  void push(size_t index) {
    {
      const std::lock_guard lock(mutex_);
      if (is_ready_[index]) return;
      is_ready_[index] = true;
      ring_[(first_ + count_++) % ring_.size()] = index;
    }
    changed_.notify_one();
  }
  // Absent: it was interrupted.
  std::optional<size_t> pop() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return count_ > 0 || interrupted_; });
    if (!std::exchange(interrupted_, false)) return take();
    return std::nullopt;
  }
  // Ends one wait, this or the next.
  void interrupt() {
    {
      const std::lock_guard lock(mutex_);
      interrupted_ = true;
    }
    changed_.notify_one();
  }
  std::optional<size_t> try_pop() {
    const std::lock_guard lock(mutex_);
    return count_ > 0 ? std::optional(take()) : std::nullopt;
  }

 private:
  size_t take() {
    const size_t index = ring_[first_];
    first_ = (first_ + 1) % ring_.size();
    --count_;
    is_ready_[index] = false;
    return index;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<bool> is_ready_;
  std::vector<size_t> ring_;
  size_t first_ = 0, count_ = 0;
  bool interrupted_ = false;
};

SpeechRequest item(SpeechRequest request, const BatchOptions& options, size_t index) {
  if (!request.seed && options.seed) request.seed = seed_of_item(*options.seed, index);
  request.delivery = Delivery::whole;
  // The engine's own deadline is for people who wait: the last item of a long batch would never meet it.
  if (request.timeout.count() == 0) request.timeout = kNoDeadline;
  return request;
}

// Takes what can be read; true when the speech has ended, or is longer than max_s (0: no limit).
bool read(Speech& speech, double max_s, BatchResult& result) {
  try {
    while (const auto samples = speech.try_next()) {
      if (samples->empty()) {
        result.summary = speech.summary();
        return true;
      }
      result.samples.insert(result.samples.end(), samples->begin(), samples->end());
      const double seconds = static_cast<double>(result.samples.size()) / speech.summary().sample_rate_hz;
      if (max_s > 0 && seconds > max_s)
        fail(ErrorCode::too_large, "the sound is longer than ", max_s,
             " seconds, the most of an item of a batch");
    }
    return false;
  } catch (...) {
    result.error = to_error(std::current_exception());
    result.summary = speech.summary();
    result.samples = {};
    return true;
  }
}

}  // namespace

std::vector<BatchResult> speak_batch(const std::function<Speech(const SpeechRequest&)>& submit,
                                     std::vector<SpeechRequest> requests, const BatchOptions& options) {
  std::vector<BatchResult> results(requests.size());
  ReadyQueue ready(requests.size());
  const std::stop_callback interrupt(options.cancel, [&ready] { ready.interrupt(); });
  std::vector<std::optional<Speech>> speeches(requests.size());  // after what their callbacks use
  size_t open = 0;
  const auto report = [&](size_t index) {
    if (options.on_item) options.on_item(index, results[index]);
  };
  const auto take = [&](size_t index) {
    if (!speeches[index] || !read(*speeches[index], options.max_item_s, results[index])) return;
    speeches[index].reset();
    --open;
    report(index);
  };
  bool cancelled = false;
  const auto heed_cancel = [&] {
    if (cancelled || !options.cancel.stop_requested()) return;
    cancelled = true;
    for (std::optional<Speech>& speech : speeches)
      if (speech) speech->cancel();
  };
  for (size_t i = 0; i < requests.size(); ++i) {
    heed_cancel();
    while (const auto index = ready.try_pop()) take(*index);
    try {
      speeches[i] = submit(item(std::move(requests[i]), options, i));
      speeches[i]->on_ready([&ready, i] { ready.push(i); });
      ++open;
    } catch (...) {
      speeches[i].reset();
      results[i].error = to_error(std::current_exception());
      report(i);
    }
  }
  while (open > 0) {
    heed_cancel();
    if (const auto index = ready.pop()) take(*index);
  }
  return results;
}

}  // namespace shoal::runtime
