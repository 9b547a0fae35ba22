// One request on its way through the engine.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/engine/prosody.h"
#include "runtime/engine/speech_state.h"
#include "runtime/families/language/speech_plan.h"
#include "runtime/schedule/schedule.h"

namespace shoal::runtime {

// A request whose clips are being encoded. Either the preparation continues with it, or the decode loop ends
// it first (cancelled, late, stopping): the first to claim it.
struct PreparingSpeech {
  std::shared_ptr<SpeechState> state;
  int64_t submitted_us = 0;
  uint64_t client = 0;
  std::atomic<bool> claimed{false};
  bool claim() { return !claimed.exchange(true); }
};

// Made by the thread that submits, then shared by the decode loop, which writes codes, the codec loop, which
// turns them into sound, and the reader's handle, which holds `state`.
struct SpeechJob {
  SpeechJob(SpeechPlan made, text::PromptColumns first, std::shared_ptr<SpeechState> shared)
      : plan(std::move(made)),
        first_prompt(std::move(first)),
        state(std::move(shared)),
        spoken(plan.utterances.size()),
        published(std::make_unique<std::atomic<int64_t>[]>(plan.utterances.size())) {
    for (const std::string& text : plan.utterances) text_bytes += static_cast<int64_t>(text.size());
  }

  // Set before the job is queued.
  JobId id = 0;
  uint64_t client = 0;
  uint64_t voice = 0;  // of its first prompt (voice_of_prompt)
  int64_t submitted_us = 0, arrival_us = 0;
  bool whole = false;              // Delivery::whole
  double speed = 1;                // at which the listener hears it
  std::optional<Prosody> prosody;  // none: the model's sound unchanged
  const SpeechPlan plan;
  text::PromptColumns first_prompt;
  const std::shared_ptr<SpeechState> state;
  int64_t text_bytes = 0;

  // Decode loop to codec loop. Utterance u's codes are appended to memory that was reserved when it began,
  // then counted in published[u]: the codec may read up to that count. An utterance below closed_utterances
  // gets no more.
  std::vector<VoiceReference> spoken;
  std::unique_ptr<std::atomic<int64_t>[]> published;
  std::atomic<int64_t> closed_utterances{0};

  // Ends the generation, by the decode loop, once. error: absent after success. The codec loop then finishes
  // the sound (or drops it, after an error) and ends `state`.
  void end_generation(std::optional<Error> error) {
    error_ = std::move(error);
    generation_ended_.store(true, std::memory_order_release);
  }
  bool generation_ended() const { return generation_ended_.load(std::memory_order_acquire); }
  // After generation_ended(), once. Nothing is copied, so that a request can report that memory ran out.
  bool failed() const { return error_.has_value(); }
  std::optional<Error> take_error() { return std::move(error_); }

  // Codec loop to decode loop: the state has ended and the codec stream is free.
  std::atomic<bool> closed{false};
  // Asks the decode loop to end the generation with this error.
  void give_up(Error error) {
    codec_error_ = std::move(error);
    given_up_.store(true, std::memory_order_release);
  }
  bool given_up() const { return given_up_.load(std::memory_order_acquire); }
  std::optional<Error> take_codec_error() { return std::move(codec_error_); }  // once given_up()

 private:
  std::atomic<bool> generation_ended_{false}, given_up_{false};
  std::optional<Error> error_, codec_error_;
};

}  // namespace shoal::runtime
