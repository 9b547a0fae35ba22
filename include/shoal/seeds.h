// Seeds that follow from a seed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shoal {

// Piece `index` of a text that is spoken in several utterances. The first speaks with the seed itself, so
// that a text in one piece is what a request of its own gives.
uint64_t seed_of_utterance(uint64_t seed, size_t index);

}  // namespace shoal
