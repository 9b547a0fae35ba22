// Seeds, and seeds that follow from them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shoal {

// Piece `index` of a text that is spoken in several utterances. The first speaks with the seed itself, so
// that a text in one piece is what a request of its own gives.
uint64_t seed_of_utterance(uint64_t seed, size_t index);

// A new seed of 53 bits, which every reader of JSON holds exactly.
uint64_t drawn_seed();

}  // namespace shoal
