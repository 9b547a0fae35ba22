// Any bytes as a pickle: the parser returns values whose references are valid, or throws shoal::Error.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "base/error.h"
#include "weights/pickle.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto pickle = shoal::weights::Pickle::parse(std::as_bytes(std::span(data, size)), "fuzz");
    size_t depth = 0;
    const shoal::weights::PickleValue* value = &pickle.root();
    while (!value->items.empty() && ++depth < 10000) value = &pickle[value->items.back()];
    if (!value->text.empty() && value->text.size() > size + 64) std::abort();
  } catch (const shoal::Error&) {
  }
  return 0;
}
