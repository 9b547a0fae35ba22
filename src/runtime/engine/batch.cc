#include "runtime/engine/batch.h"

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>

#include "base/clock.h"
#include "runtime/engine/batch_seeds.h"
#include "runtime/engine/failure.h"

namespace shoal::runtime {
namespace {

constexpr std::chrono::milliseconds kNoDeadline = std::chrono::hours(24 * 365);
constexpr std::chrono::milliseconds kAskAgain{20};  // for hold_back

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
  // Absent: interrupted, or nothing arrived within the time.
  std::optional<size_t> pop(std::chrono::milliseconds patience) {
    std::unique_lock lock(mutex_);
    const bool woken = changed_.wait_for(lock, patience, [this] { return count_ > 0 || interrupted_; });
    if (!woken || std::exchange(interrupted_, false)) return std::nullopt;
    return take();
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
  // The engine's default deadline is for interactive requests: the last item of a long batch would never meet
  // it.
  if (request.timeout.count() == 0) request.timeout = kNoDeadline;
  return request;
}

class Batch {
 public:
  Batch(const SubmitItem& submit, std::vector<SpeechRequest> requests, const BatchOptions& options)
      : submit_(submit),
        options_(options),
        requests_(std::move(requests)),
        results_(requests_.size()),
        ready_(requests_.size()),
        interrupt_(options.cancel, [this] { ready_.interrupt(); }),
        speeches_(requests_.size()) {}

  std::vector<BatchResult> speak() {
    for (size_t i = 0; i < requests_.size(); ++i) {
      make_way();
      submit(i);
    }
    while (open_ > 0) {
      heed_cancel();
      if (const auto index = ready_.pop(kNoDeadline)) take(*index);
    }
    return std::move(results_);
  }

 private:
  // Keep reading while waiting: unread sound would accumulate in the engine, uncounted.
  void make_way() {
    take_ready();
    while (!heed_cancel() && must_wait())
      if (const auto index = ready_.pop(kAskAgain)) take(*index);
  }
  bool must_wait() const {
    return (options_.max_in_flight > 0 && open_ >= options_.max_in_flight) ||
           (options_.hold_back && options_.hold_back());
  }

  void submit(size_t index) {
    std::exception_ptr thrown;  // by on_item while there was no room
    const auto meanwhile = [&] {
      try {
        take_ready();
      } catch (...) {
        thrown = std::current_exception();
        throw;
      }
    };
    try {
      speeches_[index] = submit_(item(std::move(requests_[index]), options_, index), meanwhile);
      speeches_[index]->on_ready([this, index] { ready_.push(index); });
      ++open_;
    } catch (...) {
      if (thrown) std::rethrow_exception(thrown);
      speeches_[index].reset();
      results_[index].error = to_error(std::current_exception());
      report(index);
    }
  }

  void take_ready() {
    while (const auto index = ready_.try_pop()) take(*index);
  }
  void take(size_t index) {
    if (!speeches_[index] || !read(index)) return;
    speeches_[index].reset();
    --open_;
    report(index);
  }
  void report(size_t index) {
    if (options_.on_item) options_.on_item(index, results_[index]);
  }

  // Takes what can be read; true when the speech has ended, or may not go on.
  bool read(size_t index) {
    Speech& speech = *speeches_[index];
    BatchResult& result = results_[index];
    try {
      while (const auto samples = speech.try_next()) {
        if (samples->empty()) {
          result.summary = speech.summary();
          return true;
        }
        keep(index, *samples, speech.sample_rate_hz());
      }
      return false;
    } catch (...) {
      result.error = to_error(std::current_exception());
      result.summary = speech.summary();
      result.samples = {};
      return true;
    }
  }
  void keep(size_t index, const std::vector<float>& samples, int sample_rate_hz) {
    if (options_.on_samples) options_.on_samples(index, samples.size());
    std::vector<float>& kept = results_[index].samples;
    kept.insert(kept.end(), samples.begin(), samples.end());
    const double seconds = static_cast<double>(kept.size()) / sample_rate_hz;
    if (options_.max_item_s > 0 && seconds > options_.max_item_s)
      fail(ErrorCode::too_large, "the sound is longer than ", options_.max_item_s,
           " seconds, the most of an item of a batch");
  }

  bool heed_cancel() {
    if (cancelled_ || !options_.cancel.stop_requested()) return cancelled_;
    cancelled_ = true;
    for (std::optional<Speech>& speech : speeches_)
      if (speech) speech->cancel();
    return true;
  }

  const SubmitItem& submit_;
  const BatchOptions& options_;
  std::vector<SpeechRequest> requests_;
  std::vector<BatchResult> results_;
  ReadyQueue ready_;
  std::stop_callback<std::function<void()>> interrupt_;
  std::vector<std::optional<Speech>> speeches_;  // after the members that their callbacks use
  int open_ = 0;
  bool cancelled_ = false;
};

}  // namespace

std::vector<BatchResult> speak_batch(const SubmitItem& submit, std::vector<SpeechRequest> requests,
                                     const BatchOptions& options) {
  return Batch(submit, std::move(requests), options).speak();
}

}  // namespace shoal::runtime
