// Synthetic voices, to measure how prompts share their pages.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "shoal/engine.h"

namespace shoal::bench {

struct VoiceOptions {
  int count = 0;       // at most 10,000
  double seconds = 5;  // of each; at most 120
  uint64_t seed = 1;
};

// Throws Error(invalid_argument) naming the option.
void check(const VoiceOptions& options);

// Speaks a few sentences, and picks each voice's frames at random from the generated ones: codes that this
// model can read, whatever its codebooks, and a first frame that rarely agrees between two voices. `stop` is
// checked between sentences. Throws the Errors of the engine; cancelled; unavailable (the model generated
// almost nothing).
std::vector<ReferenceCodes> make_voices(Engine& engine, const VoiceOptions& options,
                                        const std::function<bool()>& stop = {});

// Frames of voice `index`, drawn from `frames` [n, codebooks] with repetition: [count, codebooks].
std::vector<int32_t> draw_frames(std::span<const int32_t> frames, int64_t codebooks, int64_t count,
                                 uint64_t seed, uint64_t index);

}  // namespace shoal::bench
