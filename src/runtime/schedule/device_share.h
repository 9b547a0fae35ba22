// Whether decoding and the codec divide a GPU's multiprocessors, or take turns on all of them. Dividing lets
// both work at once, which makes more sound where many speak; alone, each is faster on all of them. Pure: the
// bits of results do not depend on it.
#pragma once

#include <cstdint>

namespace shoal::runtime {

// An engine for fewer sequences never divides its device.
constexpr int64_t kLeastToDivide = 48;

// dividing: what was said of the step before. speaking: sequences that get a frame in this step. Dividing
// begins at kLeastToDivide to 80 of them; once begun, it goes on at 40 to 96.
bool divides_device(bool dividing, int64_t speaking);

// Whether a step runs on all multiprocessors although the device is divided: the first sound of those whose
// prompts it computes comes sooner.
bool prefers_whole_device(int64_t prompt_columns);

// Whether the codec keeps out of a step's way, but for those who have little sound to hear: a pass beside
// many prompt columns makes the step end later, and the first sounds with it. Where very many speak the sound
// that was put off makes others wait instead.
bool puts_passes_off(int64_t prompt_columns, int64_t speaking);

}  // namespace shoal::runtime
