// A folder of sounds and of what was said in them, for recognisers.
#pragma once

#include <span>
#include <string>

namespace shoal::cli {

class KeptSounds {
 public:
  // Makes the folder if it is missing. Throws Error: invalid_argument (it holds files already), io.
  explicit KeptSounds(std::string dir);

  // Writes mode_001.wav and a line of requests.jsonl as `bench serve --keep-audio` does, with the mode's
  // number as its level: voice/evaluation/run_words.py reads both. text_number: from 0. Throws Error(io).
  void keep(const std::string& mode, int level, size_t text_number, const std::string& text,
            std::span<const float> samples, int sample_rate_hz);

 private:
  const std::string dir_;
};

}  // namespace shoal::cli
