#include "shoal/seeds.h"

#include <random>

#include "base/philox.h"
#include "runtime/engine/batch_seeds.h"

namespace shoal {
namespace {

// Counters of Philox that keep the seeds of utterances and of batch items apart.
constexpr uint32_t kUtteranceDomain = 0x7574746f, kItemDomain = 0x6974656d;

uint64_t derived_seed(uint64_t seed, size_t index, uint32_t domain) {
  const PhiloxBlock block = philox4x32(seed, {static_cast<uint32_t>(index), 0, 0, domain});
  return (uint64_t{block[0]} << 32) | block[1];
}

}  // namespace

uint64_t runtime::seed_of_item(uint64_t seed, size_t index) {
  return readable_seed(derived_seed(seed, index, kItemDomain));
}

uint64_t seed_of_utterance(uint64_t seed, size_t index) {
  return index == 0 ? seed : derived_seed(seed, index, kUtteranceDomain);
}

uint64_t drawn_seed() {
  std::random_device device;
  return runtime::readable_seed((uint64_t{device()} << 32) | device());
}

}  // namespace shoal
