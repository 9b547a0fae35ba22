// From a request to a job: voice found, clips encoded, text split and tokenised.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/families/language/clip_encoder.h"
#include "runtime/families/language/speech_job.h"
#include "runtime/voices/named_voices.h"
#include "shoal/speech_request.h"

namespace shoal::runtime {

// Thread-safe.
class Preparer {
 public:
  Preparer(const SpeechModel& model, const NamedVoices& voices, ClipEncoder& encoder);

  // Called once, with the job or the reason why there is none. Must not throw.
  using Done = std::function<void(std::shared_ptr<SpeechJob>, const std::exception_ptr&)>;
  // Makes the job of a validated request and returns it. With clips it returns null, and `done` gets the job:
  // before the return when all of them are in a cache, otherwise from the encoder's thread, or never if the
  // state ends before. Throws Error: not_found (voice), invalid_argument, too_large, unsupported; then `done`
  // is not called.
  std::shared_ptr<SpeechJob> prepare(const SpeechRequest& request, std::shared_ptr<SpeechState> state,
                                     uint64_t seed, Done done);

  // The clip's codes, waiting for the encoder. Throws Error as decoding and encoding do.
  std::shared_ptr<const ClipCodes> encode(const std::string& audio);

 private:
  struct Preparation;
  struct ClipSource {
    ClipHash hash;
    std::string audio, name, text;
    std::optional<int> speaker;
  };
  class Sources;
  static ClipSource source_of(std::string audio, std::string name, const std::string& text);
  std::vector<ClipSource> sources_of(const SpeechRequest& request) const;
  void check_encoded(const SpeechRequest& request) const;
  void warn_of_speakers(const Preparation& preparation, const SpeechPlan& plan) const;
  std::shared_ptr<SpeechJob> make_job(Preparation& preparation) const;
  void one_less(Preparation& preparation) const;

  const SpeechModel& model_;
  const NamedVoices& voices_;
  ClipEncoder& encoder_;
};

}  // namespace shoal::runtime
