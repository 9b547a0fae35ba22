// One answer in the making.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "shoal/error.h"

namespace shoal {

class Speech;
struct SpeechCallbacks;

namespace runtime {
class SpeechState;
Speech push_to(Speech speech, SpeechCallbacks callbacks);
}  // namespace runtime

// The cost and outcome of a request; complete once the speech has ended.
struct SpeechSummary {
  uint64_t seed = 0;  // that was used
  int sample_rate_hz = 0;
  int64_t samples = 0;
  int64_t frames = 0;            // spoken
  int64_t utterances = 0;        // pieces of text spoken
  int64_t prompt_columns = 0;    // of all utterances
  int64_t cached_columns = 0;    // of these, found in the prefix cache
  int64_t computed_columns = 0;  // prefilled, also again after a preemption
  int64_t preemptions = 0;
  int64_t cut_at_frames = 0;  // length of the last utterance that ran out of frames before its end; 0: none
  int64_t underruns = 0;      // pieces that came after a real-time listener had run dry
  // Seconds since submit.
  double prepared_s = 0;     // references encoded, prompt made
  double admitted_s = 0;     // prepared_s to here: waited in the queue
  double first_audio_s = 0;  // the first samples could be read
  double total_s = 0;
  // Warnings for the caller about an accepted request, such as phonemes that were dropped.
  std::vector<std::string> warnings;

  double audio_s() const { return sample_rate_hz > 0 ? static_cast<double>(samples) / sample_rate_hz : 0; }
  // Seconds of work per second of sound.
  double real_time_factor() const { return audio_s() > 0 ? total_s / audio_s() : 0; }
};

struct SpeechProgress {
  double fraction = 0;  // estimated from the text spoken so far
  int64_t frames = 0;   // generated
  double audio_s = 0;   // decoded
};

// When a word, or a punctuation mark, is heard: seconds from the first sample of the speech.
struct SpokenWord {
  std::string word;  // as it was written; numbers as they are spoken
  double start_s = 0, end_s = 0;
  friend bool operator==(const SpokenWord&, const SpokenWord&) = default;
};

// The reading end of a request. Samples are mono floats in [-1, 1] at sample_rate_hz, in order, without gaps,
// exactly those of decoding everything at once, at the speed and volume of the request. Every method may be
// called from any thread, unless the handle was moved from. Dropping the handle cancels the request and waits
// for a running call of on_ready.
class Speech {
 public:
  explicit Speech(std::shared_ptr<runtime::SpeechState> state);
  Speech(Speech&&) noexcept;
  Speech& operator=(Speech&&) noexcept;
  ~Speech();

  int sample_rate_hz() const;

  // Waits for samples and takes all that are there; empty: the speech has ended. Throws the Error that ended
  // it otherwise (after the samples that came before).
  std::vector<float> next();
  // The same without waiting, or waiting at most `patience`: absent when there is nothing yet.
  std::optional<std::vector<float>> try_next(std::chrono::milliseconds patience = std::chrono::milliseconds{
                                                 0});
  // Waits to the end and takes everything that was not read. Throws as next() does.
  std::vector<float> read_all();

  // Called from a thread of the engine when samples have arrived and at the end, or at once if there is
  // something to read already. One call may stand for several arrivals and the end: read until try_next()
  // returns nothing. It must not block or call the engine; it only wakes a reader. Only one function at a
  // time; an empty one removes it and waits for a running call.
  void on_ready(std::function<void()> notify);

  // Ends the request with Error(cancelled) unless it has ended.
  void cancel();
  bool ended() const;
  // The error that ended it; absent while it runs and after success.
  std::optional<Error> error() const;
  SpeechSummary summary() const;
  SpeechProgress progress() const;
  // The codes of everything spoken, [frames, codebooks]; complete once ended. Empty for models without codes.
  std::vector<int32_t> codes() const;
  // Words from number `first` on, in order, of the models that know (ModelTraits::phonemes). A word comes
  // with the samples in which it ends.
  std::vector<SpokenWord> words(size_t first = 0) const;

 private:
  friend Speech runtime::push_to(Speech speech, SpeechCallbacks callbacks);
  std::shared_ptr<runtime::SpeechState> state_;
};

// Receives the sound by calls instead of reading it. on_audio and on_end run on threads of the engine (or,
// for sound that is there before submit returns, on the submitting thread), one call at a time for one
// speech; a slow on_audio delays other streams. They must not stop, reload or destroy the engine or wait for
// another request: that would deadlock. Their exceptions are logged and change nothing.
struct SpeechCallbacks {
  std::function<void(std::span<const float> samples)> on_audio;
  // error: null after success.
  std::function<void(const SpeechSummary& summary, const Error* error)> on_end;
};

}  // namespace shoal
