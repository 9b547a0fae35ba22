#include "runtime/schedule/device_share.h"

namespace shoal::runtime {
namespace {

// Measured on an H200 with S1-mini's sizes (docs/perf/notebook-engine.md): fewer have their first sound
// sooner on all multiprocessors, and more need more of them for the codec than its part.
constexpr int64_t kMostToDivide = 80, kLeastToGoOn = 40, kMostToGoOn = 96;
// Fewer columns gain less; with more sequences that speak first sounds came later, not sooner.
constexpr int64_t kManyColumns = 500, kMostToPutOff = 96;

}  // namespace

bool divides_device(bool dividing, int64_t speaking) {
  if (dividing) return kLeastToGoOn <= speaking && speaking <= kMostToGoOn;
  return kLeastToDivide <= speaking && speaking <= kMostToDivide;
}

bool prefers_whole_device(int64_t prompt_columns) { return prompt_columns > 0; }

bool puts_passes_off(int64_t prompt_columns, int64_t speaking) {
  return prompt_columns >= kManyColumns && speaking <= kMostToPutOff;
}

}  // namespace shoal::runtime
