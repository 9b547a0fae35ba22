// What a language model thinks of codes that it is given (teacher forcing).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "shoal/engine_config.h"
#include "shoal/speech_request.h"

namespace shoal {

struct LogitShape {
  int codebooks = 0;     // codes of a frame
  int64_t semantic = 0;  // outputs of the head that writes the first code, or the end: tokens
  int64_t residual = 0;  // outputs of the head that writes every other code
  friend bool operator==(const LogitShape&, const LogitShape&) = default;
};

// Logits of frames in a row, before any penalty, temperature or limit of sampling.
struct LogitPiece {
  int64_t first = 0;            // frame of the first row
  std::vector<float> semantic;  // [rows, semantic]: of frame i after all before it
  // [rows, codebooks - 1, residual]: of each later code, after those before it. A row less in the last piece,
  // whose last semantic row is what follows the given codes.
  std::vector<float> residual;
};

// A language model without its codec. One thread at a time.
class ForcedLogits {
 public:
  virtual ~ForcedLogits() = default;
  virtual LogitShape shape() const = 0;
  // Starts over with the prompt of a request, as an engine makes it, followed by codes [frames, codebooks].
  // The request must be one piece of speech (chunk_length 0) in the model's own voice. Throws Error as
  // Engine::submit; invalid_argument (codes); unsupported (other voices); too_large (prompt and codes exceed
  // the model's positions); resource_exhausted.
  virtual void begin(const SpeechRequest& request, const std::vector<int32_t>& codes) = 0;
  // The next frames, at most 32; false: all were given.
  virtual bool next(LogitPiece& piece) = 0;
};

// Loads the model. Throws Error as Engine::start; unsupported (a model of another family).
std::unique_ptr<ForcedLogits> open_forced_logits(const EngineConfig& config);

}  // namespace shoal
