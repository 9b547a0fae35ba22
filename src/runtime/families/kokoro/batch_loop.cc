#include "runtime/families/kokoro/batch_loop.h"

#include <algorithm>
#include <cmath>

#include "base/log.h"
#include "base/trace.h"
#include "ops/device_state.h"
#include "runtime/engine/failure.h"
#include "runtime/families/kokoro/kokoro_memory.h"
#include "shoal/seeds.h"

namespace shoal::runtime {
namespace {

constexpr double kLearns = 0.1;  // how much of a running mean the newest value is
constexpr int64_t kSpareDeviceFrames = 2000;
constexpr int64_t kRoundPatienceUs = 1000;  // after a round that failed

// Thrown when nobody needs the rest of a batch.
struct GivenUp {};

int64_t in_turn_us(const Talk* newcomer) { return newcomer->job().submitted_us + newcomer->turn_us; }

}  // namespace

BatchLoop::BatchLoop(const Parts& parts)
    : parts_(parts),
      rate_hz_(static_cast<int>(parts.model.network().sample_rate_hz())),
      samples_per_frame_(parts.model.network().samples_per_frame()),
      device_computes_(ops::computes_by_itself(parts.execution.context().device)),
      frames_per_symbol_(kUsualFramesPerSymbol),
      workspace_bytes_(parts.execution.workspace_bytes()),
      thread_([this] { run(); }) {}

BatchLoop::~BatchLoop() {
  exit_.store(true);
  parts_.wake->ring();
  thread_.join();
}

void BatchLoop::submit(std::shared_ptr<KokoroJob> job) {
  {
    const std::lock_guard lock(incoming_mutex_);
    incoming_.push_back(std::move(job));
  }
  parts_.wake->ring();
}

void BatchLoop::cancel_all() {
  {
    const std::lock_guard lock(incoming_mutex_);
    stopping_ = true;
  }
  parts_.wake->ring();
}

void BatchLoop::run() {
  while (true) {
    int64_t wake_us = 0;
    try {
      take_incoming();
      const int64_t now = now_us();
      for (const auto& talk : talks_) talk->take_read(now);
      end_talks(now);
      if (talks_.empty() && exit_.load()) return;
      offer(now);
      const BatchPlan plan = plan_batch(waiting_, limits(now), now);
      if (!plan.run.empty()) {
        speak(plan.run);
        continue;
      }
      wake_us = earlier(plan.wait_until_us, earliest_deadline());
    } catch (const std::exception& error) {  // no memory for the loop's own lists
      log(LogLevel::error, "a round of the batch loop failed: ", error.what());
      wake_us = now_us() + kRoundPatienceUs;
    }
    parts_.wake->wait(wake_us);
  }
}

void BatchLoop::take_incoming() {
  const auto prefetch = static_cast<int64_t>(parts_.config.prefetch_s * rate_hz_);
  const std::lock_guard lock(incoming_mutex_);
  while (!incoming_.empty()) {
    talks_.reserve(talks_.size() + 1);
    auto talk = std::make_unique<Talk>(incoming_.front(), rate_hz_, prefetch, parts_.ledger);
    const auto of_client = [&](const auto& other) {
      return other->job().client == talk->job().client && !other->was_heard();
    };
    const auto before = static_cast<double>(std::ranges::count_if(talks_, of_client));
    talk->turn_us = static_cast<int64_t>(chunk_us_ * before);
    talks_.push_back(std::move(talk));
    incoming_.pop_front();
  }
}

// The error that ends a talk early, if any.
std::optional<Error> BatchLoop::end_of(const Talk& talk, int64_t now) {
  if (talk.job().state->cancelled()) return end_error(ErrorCode::cancelled);
  if (talk.error) return talk.error;
  if (const int64_t end_us = talk.job().state->deadline_us(now); end_us != 0 && end_us <= now)
    return error_without_fail(ErrorCode::deadline_exceeded,
                              "batch processing timed out: the request's time was up before it was spoken "
                              "(timeout, request_timeout_s)");
  const std::lock_guard lock(incoming_mutex_);
  if (stopping_) return error_without_fail(ErrorCode::unavailable, "the engine is stopping");
  return std::nullopt;
}

void BatchLoop::end_talks(int64_t now) {
  const auto goes_on = [&](const std::unique_ptr<Talk>& talk) {
    if (talk->has_ended()) return false;
    talk->error = end_of(*talk, now);
    return !talk->error && !talk->is_complete();
  };
  const auto ending = std::stable_partition(talks_.begin(), talks_.end(), goes_on);
  if (ending == talks_.end()) return;
  // Counted before its reader is told.
  count_activity({talks_.begin(), ending});
  for (const auto& talk : std::span(ending, talks_.end()))
    if (!talk->has_ended()) talk->end(std::move(talk->error));
  talks_.erase(ending, talks_.end());
}

// A batch takes seconds on a CPU: late and cancelled requests end during it, and a batch that nobody waits
// for is abandoned. Ended requests stay in the list until the batch is done.
void BatchLoop::end_within_batch(const std::vector<Chosen>& batch) {
  take_incoming();
  const int64_t now = now_us();
  bool any = false;
  for (const auto& talk : talks_) {
    if (talk->has_ended()) continue;
    talk->error = end_of(*talk, now);
    any |= talk->error.has_value();
  }
  if (!any) return;
  count_activity(talks_);
  for (const auto& talk : talks_)
    if (talk->error && !talk->has_ended()) talk->end(std::move(talk->error));
  if (std::ranges::all_of(batch, [](const Chosen& chosen) { return chosen.talk->has_ended(); }))
    throw GivenUp();
}

void BatchLoop::count_activity(std::span<const std::unique_ptr<Talk>> talks) {
  int64_t running = 0, paused = 0;
  for (const auto& talk : talks)
    if (talk->is_active() && !talk->has_ended() && !talk->error) ++(talk->paused ? paused : running);
  parts_.ledger.set_activity(running, paused, 0);
}

int64_t BatchLoop::expected_frames(const Talk& talk, const ReadChunk& chunk) const {
  const double frames = static_cast<double>(chunk.ids.size()) * frames_per_symbol_ / talk.job().speed;
  return std::max<int64_t>(1, std::llround(frames));
}

void BatchLoop::offer(Talk& talk, int64_t now) {
  if (talk.pause_if_full()) return;
  int64_t due_us = talk.was_heard() ? talk.runs_dry_us() : talk.job().submitted_us;
  // Listeners hear the first chunk before the second is started.
  const bool one = !talk.was_heard() && !talk.job().whole;
  int64_t offered = 0;
  for (int64_t i = talk.first(); i < talk.end_index() && offered < parts_.config.max_batch_size; ++i) {
    const int64_t frames = expected_frames(talk, talk.chunk(i));
    if (std::ssize(talk.offered_us) <= i - talk.first()) {
      talk.offered_us.push_back(now);
      arrivals_.add(now);
    }
    if (talk.needs_speaking(i)) {
      waiting_.push_back({.request = talk.job().id,
                          .index = i,
                          .arrival_us = talk.offered_us[static_cast<size_t>(i - talk.first())],
                          .due_us = due_us,
                          .turn_us = talk.was_heard() ? 0 : talk.turn_us,
                          .frames = frames});
      choices_.push_back({&talk, i});
      ++offered;
    }
    if (one && offered > 0) return;
    due_us += frames * samples_per_frame_ * 1'000'000 / rate_hz_;
  }
}

void BatchLoop::offer(int64_t now) {
  waiting_.clear(), choices_.clear();
  int64_t places = parts_.config.streams();
  std::vector<Talk*> newcomers;
  for (const auto& talk : talks_) {
    if (talk->is_active()) {
      offer(*talk, now);
      --places;
    } else if (talk->first() < talk->end_index()) {
      newcomers.push_back(talk.get());
    }
  }
  std::ranges::stable_sort(newcomers, {}, &in_turn_us);
  for (Talk* const talk : newcomers)
    if (places-- > 0) offer(*talk, now);
  count_activity(talks_);
}

BatchLimits BatchLoop::limits(int64_t now) const {
  const EngineConfig& config = parts_.config;
  return {.max_batch = config.max_batch_size,
          .max_frames = frames_of_a_batch(config, device_computes_),
          .spare_frames = device_computes_ ? kSpareDeviceFrames : 0,
          .min_wait_us = int64_t{config.min_wait_ms} * 1000,
          .max_wait_us = int64_t{config.max_wait_ms} * 1000,
          .arrivals_per_s = arrivals_.per_s(now)};
}

int64_t BatchLoop::earliest_deadline() const {
  int64_t earliest = 0;
  const int64_t now = now_us();
  for (const auto& talk : talks_) earliest = earlier(earliest, talk->job().state->deadline_us(now));
  return earliest;
}

std::vector<kokoro::Spoken> BatchLoop::call(const std::vector<Chosen>& batch) {
  std::vector<kokoro::Utterance> utterances;
  for (const auto& [talk, index] : batch) {
    const ReadChunk& chunk = talk->chunk(index);
    utterances.push_back({.ids = chunk.ids,
                          .style = chunk.style,
                          .speed = static_cast<float>(talk->job().speed),
                          .seed = seed_of_utterance(talk->job().seed, static_cast<size_t>(index))});
  }
  const int64_t start = now_us();
  const auto look = [&] { end_within_batch(batch); };
  const kokoro::BetweenStages between(look);
  std::vector<kokoro::Spoken> spoken = parts_.calls.speak(utterances, device_computes_ ? nullptr : &between);
  const auto took_us = static_cast<double>(now_us() - start);
  const double each_us = took_us / static_cast<double>(batch.size());
  chunk_us_ = chunk_us_ == 0 ? each_us : chunk_us_ + kLearns * (each_us - chunk_us_);
  int64_t frames = 0;
  for (const kokoro::Spoken& one : spoken) frames += one.frames();
  parts_.ledger.count_step(std::ssize(batch), frames, took_us * 1e-6,
                           static_cast<double>(frames * samples_per_frame_) / rate_hz_);
  workspace_bytes_.store(parts_.execution.workspace_bytes(), std::memory_order_relaxed);
  return spoken;
}

void BatchLoop::speak(const std::vector<size_t>& planned) {
  const int64_t start = now_us();
  std::vector<Chosen> batch;
  int64_t frames = 0;
  for (const size_t i : planned) {
    batch.push_back(choices_[i]);
    choices_[i].talk->admit(start);
    frames += waiting_[i].frames;
  }
  const TraceSpan span("batch", {{"chunks", batch.size()}, {"expected_frames", frames}});
  try {
    std::vector<kokoro::Spoken> spoken = call(batch);
    for (size_t i = 0; i < batch.size(); ++i) finish(batch[i], std::move(spoken[i]));
  } catch (const GivenUp&) {
  } catch (...) {
    log(LogLevel::warning,
        "a batch failed, its chunks are spoken one by one: ", to_error(std::current_exception()).message());
    parts_.ledger.count_retry();
    for (const Chosen& chosen : batch) speak_alone(chosen);
  }
}

void BatchLoop::speak_alone(const Chosen& chosen) {
  Talk& talk = *chosen.talk;
  if (talk.has_ended() || chosen.index < talk.first() || !talk.needs_speaking(chosen.index))
    return;  // it was finished before
  try {
    std::vector<kokoro::Spoken> spoken = call({chosen});
    finish(chosen, std::move(spoken.at(0)));
  } catch (const GivenUp&) {
  } catch (...) {
    if (!talk.error) talk.error = to_error(std::current_exception());
  }
}

void BatchLoop::finish(const Chosen& chosen, kokoro::Spoken spoken) {
  const auto symbols = static_cast<double>(spoken.durations.size());
  const double ratio = static_cast<double>(spoken.frames()) * chosen.talk->job().speed / symbols;
  frames_per_symbol_ += kLearns * (ratio - frames_per_symbol_);
  if (chosen.talk->has_ended()) return;
  try {
    chosen.talk->take_spoken(chosen.index, std::move(spoken));
  } catch (...) {  // delivered sound cannot be taken back
    if (!chosen.talk->error) chosen.talk->error = to_error(std::current_exception());
  }
}

}  // namespace shoal::runtime
