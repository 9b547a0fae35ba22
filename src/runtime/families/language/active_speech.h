// A request in generation: the decode loop's side of it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/function_ref.h"
#include "models/dual_ar/generation.h"
#include "runtime/families/language/speech_job.h"
#include "runtime/families/language/step_runner.h"
#include "runtime/kv/kv_pages.h"
#include "runtime/schedule/schedule.h"

namespace shoal::runtime {

// Throws Error(too_large), with the figures, for a prompt that with its frames needs more pages than there
// are.
void check_fits(int64_t columns, int64_t prompt_columns, int64_t pages, int64_t page_size);

// Speaks the utterances of a job one after another. Engine thread only.
class ActiveSpeech {
 public:
  ActiveSpeech(std::shared_ptr<SpeechJob> job, const SpeechModel& model);

  // Builds the prompt of the next utterance and allocates all memory that its frames will need, so that
  // nothing is allocated while it speaks. Throws Error: too_large (prompt, KV memory).
  void begin_utterance(const KvPages& pages);
  // Takes the cached prefix of the prompt; calls `copy` for a page that must be copied.
  void attach_prefix(KvPages& pages, FunctionRef<void(PageCopy)> copy);
  // Gives its pages back; its columns will be computed again.
  void preempt();

  // What of the step is this one's. False when its pages cannot be held.
  bool rows(const StepRows& planned, SequenceRows& rows);
  // The rows have been computed; true when they ended the utterance.
  bool accept(const SequenceRows& rows);
  // After the last utterance or an error: releases everything and informs the codec.
  void end(std::optional<Error> error);

  ActiveJob describe(int64_t now, int64_t frame_us, int64_t prefetch_samples) const;
  SpeechJob& job() const { return *job_; }
  bool has_next_utterance() const { return utterance_ + 1 < job_->plan.utterances.size(); }
  void next_utterance() { ++utterance_; }
  bool started() const { return started_; }
  bool ended() const { return ended_; }
  bool silent() const;               // nothing spoken so far is audible
  bool cut() const { return cut_; }  // an utterance ended at max_new_tokens

 private:
  void spoke_frame();
  int64_t prompt_columns() const { return prompt_.columns(); }

  std::shared_ptr<SpeechJob> job_;
  const SpeechModel& model_;
  size_t utterance_ = 0;
  uint64_t voice_ = 0;
  std::optional<dual_ar::Utterance> generation_;
  text::PromptColumns prompt_;
  SequencePages pages_;
  std::vector<int32_t> frame_;  // the one being drawn
  bool cut_ = false;
  int64_t columns_done_ = 0;
  int64_t frames_before_ = 0;  // of earlier utterances
  int64_t text_bytes_before_ = 0;
  int64_t first_frame_us_ = 0;
  bool started_ = false, ended_ = false;
};

}  // namespace shoal::runtime
