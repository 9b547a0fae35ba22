// One run of `shoal evaluate`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "bench/quality/report.h"
#include "cli/engine_settings.h"

namespace shoal::cli {

struct EvaluateOptions {
  EngineSettings settings;     // of both sides, and of the measured one's formats
  std::string model, against;  // empty: the settings'; the same
  std::string against_precision = "float32", against_weights = "auto", against_kv_precision = "auto",
              against_codec_weights = "auto";

  std::string texts;                  // a file; empty: built-in sentences
  std::optional<int> sentences;       // the first so many
  std::optional<int64_t> max_frames;  // of a text
  uint64_t seed = 1;
  bool logits_only = false, no_sound = false;
  std::string keep_sound;  // a folder for what both say; empty: none
  std::string json;        // a file; empty: none
  quality::Gates gates;
};

// Prints a table, or JSON. Throws Error as models and engines do; invalid_argument; unsupported (no language
// model); io; cancelled; unavailable when a gate is missed, after reporting.
void run_evaluation(const EvaluateOptions& options);

}  // namespace shoal::cli
