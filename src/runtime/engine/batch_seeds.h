// Seeds of the items of a batch. shoal/seeds.h has those of utterances.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shoal::runtime {

// 53 bits, which every JSON reader keeps exactly: for seeds that clients receive and send again.
constexpr uint64_t readable_seed(uint64_t random_bits) { return random_bits >> 11; }
// Item `index` of a batch that has a seed; readable.
uint64_t seed_of_item(uint64_t seed, size_t index);

}  // namespace shoal::runtime
