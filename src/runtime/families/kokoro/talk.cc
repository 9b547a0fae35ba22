#include "runtime/families/kokoro/talk.h"

#include <algorithm>
#include <utility>

#include "runtime/engine/failure.h"
#include "runtime/engine/prosody.h"
#include "runtime/engine/silent_speech.h"
#include "text/phonemes/timestamps.h"

namespace shoal::runtime {
namespace {

std::vector<SpokenWord> words_of(const phonemes::Chunk& chunk, const kokoro::Spoken& spoken) {
  const std::vector<int64_t> durations(spoken.durations.begin(), spoken.durations.end());
  std::vector<SpokenWord> words;
  for (const phonemes::WordTime& time : phonemes::word_times(chunk.tokens, durations))
    words.push_back({chunk.tokens[time.token].text, time.start_s, time.end_s});
  return words;
}

double seconds(int64_t us) { return static_cast<double>(us) * 1e-6; }

}  // namespace

Talk::Talk(std::shared_ptr<KokoroJob> taken, int sample_rate_hz, int64_t prefetch_samples, Ledger& ledger)
    : job_(std::move(taken)),
      rate_hz_(sample_rate_hz),
      prefetch_samples_(prefetch_samples),
      ledger_(ledger),
      joiner_(sample_rate_hz, job_->speed, job_->trim) {}

void Talk::take_read(int64_t now) noexcept {
  try {
    if (!is_read_) take_additions(now);
    give_what_is_there();
  } catch (...) {  // samples already taken are not taken again
    error = to_error(std::current_exception());
  }
}

void Talk::take_additions(int64_t now) {
  KokoroJob::Reading reading = job_->take();
  for (ReadChunk& chunk : reading.chunks) chunks_.push_back(std::move(chunk));
  bytes_read_ = reading.bytes;
  is_read_ = reading.complete;
  if (reading.error) error = std::move(reading.error);
  if (stage_ == Stage::preparing && !chunks_.empty()) {
    stage_ = Stage::waiting;
    ledger_.move(Stage::preparing, Stage::waiting, job_->client);
    job_->state->update(
        [&](SpeechSummary& summary) { summary.prepared_s = seconds(now - job_->submitted_us); });
  }
}

void Talk::admit(int64_t now) {
  if (stage_ == Stage::active) return;
  ledger_.move(stage_, Stage::active, job_->client);
  stage_ = Stage::active;
  job_->state->update(
      [&](SpeechSummary& summary) { summary.admitted_s = seconds(now - job_->submitted_us); });
}

void Talk::take_spoken(int64_t index, kokoro::Spoken spoken) {
  made_.emplace(index, std::move(spoken));
  give_what_is_there();
}

void Talk::give_what_is_there() {
  while (!error && !chunks_.empty()) {
    const ReadChunk& chunk = chunks_.front();
    const auto made = made_.find(given_);
    if (chunk.ids.empty()) {
      if (pause_if_full()) return;  // silence is made faster than anybody reads
      give(joiner_.add_pause(chunk.chunk.pause_after_s));
    } else if (made == made_.end()) {
      return;
    } else {
      frames_ += made->second.frames();
      ++spoken_;
      give(joiner_.add({.samples = std::move(made->second.samples),
                        .words = words_of(chunk.chunk, made->second),
                        .phonemes = chunk.chunk.phonemes,
                        .pause_after_s = chunk.chunk.pause_after_s}));
      made_.erase(made);
    }
    chunks_.pop_front();
    if (!offered_us.empty()) offered_us.pop_front();
    ++given_;
    tell_progress();
  }
}

void Talk::tell_progress() {
  const auto given = static_cast<double>(given_), left = static_cast<double>(chunks_.size());
  const double read = is_read_ || job_->text_bytes == 0
                          ? 1
                          : static_cast<double>(bytes_read_) / static_cast<double>(job_->text_bytes);
  job_->state->set_progress(read * given / (given + left), frames_);
  job_->state->update([&](SpeechSummary& summary) {
    summary.frames = frames_;
    summary.utterances = spoken_;
  });
}

void Talk::give(JoinedPiece piece) {
  if (piece.samples.empty()) return;
  const int64_t now = now_us();
  const int64_t dry_us = runs_dry_us() - std::ssize(piece.samples) * 1'000'000 / rate_hz_;
  change_volume(piece.samples, job_->volume);
  job_->state->append(piece.samples, std::move(piece.words));
  if (started_us_ == 0) {
    started_us_ = now;
  } else if (!job_->whole) {
    ledger_.count_gap(seconds(now - last_us_));
    if (dry_us < now) {
      started_us_ += now - dry_us;  // the listener waited
      ledger_.count_underrun();
      job_->state->update([](SpeechSummary& summary) { ++summary.underruns; });
    }
  }
  last_us_ = now;
}

void Talk::end(std::optional<Error> why) {
  if (!why) {
    try {
      give(joiner_.end());
      if (job_->state->cancelled())  // in this very moment: the samples may have been dropped
        why = end_error(ErrorCode::cancelled);
      else if (joiner_.samples() == 0 && job_->speaker.language)
        append_silence(*job_->state);
      else if (joiner_.samples() == 0)
        why = Error(ErrorCode::invalid_argument, "phonemes: the model knows none of them");
    } catch (...) {
      why = to_error(std::current_exception());
    }
  }
  job_->ended.store(true, std::memory_order_relaxed);
  ledger_.leave(*job_->state, stage_, job_->client, std::move(why));
}

}  // namespace shoal::runtime
