// One request after another, from text to samples.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/thread_team.h"
#include "models/dac/stream.h"
#include "models/dual_ar/generation.h"
#include "ops/context.h"
#include "runtime/speech_model.h"
#include "runtime/speech_request.h"
#include "tensor/workspace.h"
#include "text/prompt.h"

namespace shoal::runtime {

struct SpeechStatistics {
  int64_t utterances = 0;
  int64_t prompt_columns = 0;  // prefilled, over all utterances
  int64_t frames = 0;          // spoken
  int64_t samples = 0;
  int sample_rate_hz = 0;
  int64_t cut_at_frames =
      0;  // length of the last utterance that ran out of frames before its end token; 0: none
  double first_audio_s = 0;  // from the call of speak() to the first samples
  double prefill_s = 0, decode_s = 0, codec_s = 0, total_s = 0;

  double audio_s() const { return sample_rate_hz ? static_cast<double>(samples) / sample_rate_hz : 0; }
  double real_time_factor() const { return audio_s() > 0 ? total_s / audio_s() : 0; }
};

struct SpeechProgress {
  double fraction = 0;  // estimated from the text spoken so far
  int64_t frames = 0;
  double elapsed_s = 0;
  double audio_s = 0;
};

// Receives samples as they are made: mono, at the codec's rate.
using PcmSink = std::function<void(std::span<const float>)>;
// Called once a frame; returning false cancels the request (Error(cancelled)).
using ProgressHook = std::function<bool(const SpeechProgress&)>;

// Owns the working memory of one stream of speech. One request at a time, from one thread.
class Synthesizer {
 public:
  Synthesizer(const SpeechModel& model, ThreadTeam& team);

  // Samples leave in pieces of 1, 2, 4, 8, 16 frames, exactly those that decoding everything at once would
  // give.
  SpeechStatistics speak(const SpeechRequest& request, const PcmSink& sink,
                         const ProgressHook& progress = {});

  // The codes of each utterance of the last request, [frames, num_codebooks].
  const std::vector<VoiceReference>& utterances() const { return utterances_; }
  ops::Context& context() { return ctx_; }

 private:
  struct Run;  // one request in progress

  void speak_utterance(Run& run, const std::string& text);
  void prefill(Run& run, const text::PromptColumns& prompt, int64_t positions_needed);
  void decode_frame(Run& run, std::span<const int32_t> frame, int64_t position);
  void release_frames(Run& run, const VoiceReference& spoken, bool everything);
  ops::BatchPlan plan_rows(int64_t first_position, int64_t rows);

  const SpeechModel& model_;
  Workspace workspace_;
  ops::Context ctx_;
  std::optional<dual_ar::KvCache> cache_;
  dac::CodecStatePool codec_states_;
  dac::CodecStream codec_stream_;
  Tensor hidden_;  // [1, dim]
  std::vector<int32_t> page_table_, positions_, row_offsets_;
  std::vector<VoiceReference> utterances_;
};

}  // namespace shoal::runtime
