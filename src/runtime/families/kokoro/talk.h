// A request that is being spoken, as the batch loop sees it.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>

#include "runtime/engine/ledger.h"
#include "runtime/families/kokoro/chunk_joiner.h"
#include "runtime/families/kokoro/kokoro_job.h"

namespace shoal::runtime {

// Takes chunks as they are read, spoken sound as it is made, in any order, and gives the reader what follows
// in order. Of the loop's thread.
class Talk {
 public:
  // prefetch_samples: it pauses when this many samples are unread.
  Talk(std::shared_ptr<KokoroJob> taken, int sample_rate_hz, int64_t prefetch_samples, Ledger& ledger);

  KokoroJob& job() const { return *job_; }

  // Takes what the reader of the text has added. Pauses are given as far as the listener has room. A failure
  // sets `error`.
  void take_read(int64_t now) noexcept;
  // So many samples are unread that it pauses; the engine is woken when that changes.
  bool pause_if_full() { return paused = job_->state->pause_beyond(prefetch_samples_); }
  // It takes part in a batch.
  void admit(int64_t now);
  // Adds the sound of chunk `index` and delivers what can be delivered now. Throws std::bad_alloc; delivered
  // samples stay.
  void take_spoken(int64_t index, kokoro::Spoken spoken);
  // Ends the request, once: error, or else the last samples and success.
  void end(std::optional<Error> error);
  bool has_ended() const { return job_->ended.load(std::memory_order_relaxed); }
  // No more chunks will come, and all sound has been delivered.
  bool is_complete() const { return is_read_ && chunks_.empty(); }

  // Chunks that are read and not given: `index` counts all of a request.
  int64_t first() const { return given_; }
  int64_t end_index() const { return given_ + std::ssize(chunks_); }
  const ReadChunk& chunk(int64_t index) const { return chunks_[static_cast<size_t>(index - given_)]; }
  bool needs_speaking(int64_t index) const { return !chunk(index).ids.empty() && !made_.contains(index); }

  bool was_heard() const { return started_us_ != 0; }
  // When the delivered sound will have been played.
  int64_t runs_dry_us() const { return started_us_ + joiner_.samples() * 1'000'000 / rate_hz_; }
  bool is_active() const { return stage_ == Stage::active; }

  // The loop's own notes.
  std::deque<int64_t> offered_us;  // when chunks first() and later could be spoken first; as many as were
  int64_t turn_us = 0;             // WaitingChunk
  bool paused = false;
  std::optional<Error> error;

 private:
  void take_additions(int64_t now);
  void give_what_is_there();
  void give(JoinedPiece piece);
  void tell_progress();

  const std::shared_ptr<KokoroJob> job_;
  const int rate_hz_;
  const int64_t prefetch_samples_;
  Ledger& ledger_;
  ChunkJoiner joiner_;
  Stage stage_ = Stage::preparing;
  std::deque<ReadChunk> chunks_;
  std::map<int64_t, kokoro::Spoken> made_;
  int64_t given_ = 0, spoken_ = 0;  // chunks; those with sound
  int64_t frames_ = 0;
  int64_t started_us_ = 0, last_us_ = 0;  // when it was heard first, and last given something; 0: not yet
  size_t bytes_read_ = 0;
  bool is_read_ = false;
};

}  // namespace shoal::runtime
