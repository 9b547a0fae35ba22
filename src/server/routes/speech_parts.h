// The parts of an SSML text, spoken in their order as one stream.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/routes/services.h"
#include "server/routes/speech_reader.h"
#include "server/routes/speech_source.h"
#include "text/ssml/ssml.h"

namespace shoal::server {

// Reads a text as SSML for a model: its parts. `request`: gets the plain text of all of them, and notes of
// what has no effect. Throws the Errors of ssml::parse, and invalid_argument when a rate times the request's
// speed is out of its range.
std::vector<ssml::Part> read_ssml(Engine& engine, SpeechRequest& request);

// Each part is a request of its own; the next one is submitted while one is heard. Part k has the seed
// seed_of_utterance(seed, k). Without a voice the codes of the first part are the reference of the later
// ones, so that the voice stays the same. Pauses are zeros.
class SpeechParts final : public SpeechSource {
 public:
  // `usual`: the request, with the text of all parts. All outlive it but the values.
  SpeechParts(Services& services, Engine& engine, const Request& from, Executor executor, SpeechRequest usual,
              std::vector<ssml::Part> parts);

  // Checks limits and voices, and submits the first part. Throws as submit_speech does.
  Task<> begin();
  Task<std::vector<float>> next() override;
  void cancel() override;
  SpeechSummary summary() const override;
  std::vector<SpokenWord> words(size_t first) const override;

 private:
  struct Spoken {
    std::unique_ptr<SpeechReader> reader;
    size_t part = 0;
  };

  Task<> submit_part(size_t part);
  Task<> submit_ahead();
  void end_part();
  std::vector<float> some_silence();
  std::vector<SpokenWord> current_words() const;
  SpeechRequest request_of(size_t part) const;
  bool keeps_voice(size_t part) const;
  void check_voices();

  Services& services_;
  Engine& engine_;
  const Request& from_;
  const Executor executor_;
  SpeechRequest usual_;
  const std::vector<ssml::Part> parts_;
  const int rate_hz_;
  const bool models_voice_stays_;
  size_t at_ = 0;  // the part that is heard
  std::optional<Spoken> heard_, ahead_;
  int64_t samples_ = 0, begun_at_ = 0, silence_left_ = 0;
  std::vector<SpokenWord> words_;  // of parts that have ended
  SpeechSummary ended_;            // of them
  bool cancelled_ = false, spoke_ = false;
};

}  // namespace shoal::server
