// Seeds, and seeds that follow from them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shoal {

// The seed of piece `index` of a text that is spoken in several utterances. The first piece has the seed
// itself, so a text of one piece sounds like a request of its own.
uint64_t seed_of_utterance(uint64_t seed, size_t index);

// A new seed of 53 bits, which every reader of JSON holds exactly.
uint64_t drawn_seed();

}  // namespace shoal
