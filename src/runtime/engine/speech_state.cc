#include "runtime/engine/speech_state.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/log.h"

namespace shoal::runtime {

SpeechState::SpeechState(int sample_rate_hz, uint64_t seed, std::shared_ptr<WakeSignal> engine,
                         RequestDeadline deadline, ClockUs clock)
    : sample_rate_hz_(sample_rate_hz),
      engine_(std::move(engine)),
      clock_(clock),
      start_us_(clock()),
      deadline_(deadline) {
  summary_.seed = seed;
  summary_.sample_rate_hz = sample_rate_hz;
}

bool SpeechState::pause_beyond(int64_t samples) {
  const std::lock_guard lock(mutex_);
  return paused_ = static_cast<int64_t>(unread_.size()) > samples;
}

int64_t SpeechState::deadline_us(int64_t now) const {
  const std::lock_guard lock(mutex_);
  return deadline_.at_us(now);
}

void SpeechState::append(std::span<const float> samples, std::vector<SpokenWord> words) {
  if (samples.empty() || cancelled()) return;
  {
    const std::lock_guard lock(mutex_);
    CHECK(!ended_, "samples after the end");
    words_.reserve(words_.size() + words.size());
    unread_.insert(unread_.end(), samples.begin(), samples.end());
    std::ranges::move(words, std::back_inserter(words_));
    deadline_.give(clock_(), std::ssize(samples) * 1'000'000 / sample_rate_hz_);
    if (summary_.samples == 0) summary_.first_audio_s = static_cast<double>(clock_() - start_us_) * 1e-6;
    summary_.samples += static_cast<int64_t>(samples.size());
    progress_.audio_s = summary_.audio_s();
  }
  arrived_.notify_all();
  notify();
}

void SpeechState::update(FunctionRef<void(SpeechSummary&)> change) {
  const std::lock_guard lock(mutex_);
  change(summary_);
}

void SpeechState::set_progress(double fraction, int64_t frames) {
  const std::lock_guard lock(mutex_);
  progress_.fraction = fraction;
  progress_.frames = frames;
}

void SpeechState::keep_codes(std::vector<VoiceReference> spoken) {
  const std::lock_guard lock(mutex_);
  spoken_ = std::move(spoken);
}

void SpeechState::end(std::optional<Error> error, FunctionRef<void(const SpeechSummary&)> count) {
  {
    const std::lock_guard lock(mutex_);
    CHECK(!ended_, "a speech ended twice");
    ended_ = true;
    error_ = std::move(error);
    summary_.total_s = static_cast<double>(clock_() - start_us_) * 1e-6;
    if (!error_) progress_.fraction = 1;
    count(summary_);
  }
  arrived_.notify_all();
  notify();
}

std::vector<float> SpeechState::take(std::unique_lock<std::mutex>& lock) {
  std::vector<float> samples = std::exchange(unread_, {});
  if (samples.empty() && error_) throw Error(*error_);
  deadline_.take(clock_());
  const bool was_paused = std::exchange(paused_, false);
  lock.unlock();
  if (was_paused) engine_->ring();
  return samples;
}

std::vector<float> SpeechState::next() {
  std::unique_lock lock(mutex_);
  arrived_.wait(lock, [this] { return !unread_.empty() || ended_; });
  return take(lock);
}

std::optional<std::vector<float>> SpeechState::try_next(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  const auto something = [this] { return !unread_.empty() || ended_; };
  if (!arrived_.wait_for(lock, patience, something)) return std::nullopt;
  return take(lock);
}

std::vector<float> SpeechState::read_all() {
  std::vector<float> all;
  while (true) {
    const std::vector<float> samples = next();
    if (samples.empty()) return all;
    all.insert(all.end(), samples.begin(), samples.end());
  }
}

void SpeechState::notify() noexcept {
  const std::lock_guard lock(notify_mutex_);
  const auto call = notify_;  // the call may replace the function, which destroys it
  if (!call) return;
  try {
    (*call)();
  } catch (const std::exception& error) {
    log(LogLevel::error, "a callback of a speech threw: ", error.what());
  } catch (...) {
    log(LogLevel::error, "a callback of a speech threw what is not an exception");
  }
}

void SpeechState::on_ready(std::function<void()> notify) {
  auto call = notify ? std::make_shared<std::function<void()>>(std::move(notify)) : nullptr;
  const std::lock_guard lock(notify_mutex_);
  notify_ = std::move(call);
  bool something = false;
  {
    const std::lock_guard state_lock(mutex_);
    something = !unread_.empty() || ended_;
  }
  if (something) this->notify();
}

void SpeechState::cancel() {
  cancelled_.store(true, std::memory_order_relaxed);
  if (!ended()) engine_->ring();
}

bool SpeechState::ended() const {
  const std::lock_guard lock(mutex_);
  return ended_;
}

std::optional<Error> SpeechState::error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

SpeechSummary SpeechState::summary() const {
  const std::lock_guard lock(mutex_);
  return summary_;
}

SpeechProgress SpeechState::progress() const {
  const std::lock_guard lock(mutex_);
  return progress_;
}

std::vector<int32_t> SpeechState::codes() const {
  const std::lock_guard lock(mutex_);
  std::vector<int32_t> codes;
  for (const VoiceReference& utterance : spoken_)
    codes.insert(codes.end(), utterance.codes.begin(), utterance.codes.end());
  return codes;
}

std::vector<SpokenWord> SpeechState::words(size_t first) const {
  const std::lock_guard lock(mutex_);
  return {words_.begin() + static_cast<std::ptrdiff_t>(std::min(first, words_.size())), words_.end()};
}

}  // namespace shoal::runtime

namespace shoal {

Speech::Speech(std::shared_ptr<runtime::SpeechState> state) : state_(std::move(state)) {}
Speech::Speech(Speech&&) noexcept = default;

Speech& Speech::operator=(Speech&& other) noexcept {
  if (this == &other) return *this;
  const Speech replaced(std::move(*this));
  state_ = std::move(other.state_);
  return *this;
}

Speech::~Speech() {
  if (!state_) return;
  state_->cancel();
  state_->on_ready({});
}

int Speech::sample_rate_hz() const { return state_->sample_rate_hz(); }
std::vector<float> Speech::next() { return state_->next(); }
std::optional<std::vector<float>> Speech::try_next(std::chrono::milliseconds patience) {
  return state_->try_next(patience);
}
std::vector<float> Speech::read_all() { return state_->read_all(); }
void Speech::on_ready(std::function<void()> notify) {
  const auto state = state_;  // the function may be called here and destroy this
  state->on_ready(std::move(notify));
}
void Speech::cancel() { state_->cancel(); }
bool Speech::ended() const { return state_->ended(); }
std::optional<Error> Speech::error() const { return state_->error(); }
SpeechSummary Speech::summary() const { return state_->summary(); }
SpeechProgress Speech::progress() const { return state_->progress(); }
std::vector<int32_t> Speech::codes() const { return state_->codes(); }
std::vector<SpokenWord> Speech::words(size_t first) const { return state_->words(first); }

}  // namespace shoal
