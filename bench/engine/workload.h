// The requests of the users of a load.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "shoal/speech_request.h"

namespace shoal::bench {

struct WorkloadOptions {
  // Spoken in order, again and again; empty: sentences of our own, each with an opening that hardly ever
  // comes twice, as real texts begin differently.
  std::vector<std::string> texts;
  // Frames of a request, drawn from this range; the model may end earlier. 0: the model's own end, at most
  // 1,024 in each utterance.
  int64_t min_frames = 0, max_frames = 0;
  // Of a model of phonemes instead: phonemes of a request, drawn from this range, so that texts need no
  // pronunciation. 0: texts.
  int64_t min_phonemes = 0, max_phonemes = 0;
  // Share of the requests that speak with the first voice; the others share the rest evenly. Absent: all
  // voices evenly.
  std::optional<double> shared_voice;
  uint64_t seed = 1;
};

// Throws Error(invalid_argument) naming the option. voices: how many there will be.
void check(const WorkloadOptions& options, int64_t voices);

// Thread-safe: request i is a pure function of options, voices and i.
class Workload {
 public:
  // voices: encoded references, one for each synthetic voice; empty: the model speaks without.
  // Throws Error as check().
  Workload(WorkloadOptions options, std::vector<ReferenceCodes> voices);

  SpeechRequest request(uint64_t index) const;

 private:
  std::string text(uint64_t index) const;
  std::string phonemes(uint64_t index) const;
  size_t voice(uint64_t index) const;

  WorkloadOptions options_;
  std::vector<ReferenceCodes> voices_;
  std::vector<size_t> order_;  // of our own sentences
};

}  // namespace shoal::bench
