// Arbitrary bytes as SSML: refused by an Error of the caller's, or parts within the limits.
#include <cstdint>
#include <cstdlib>

#include "base/error.h"
#include "text/ssml/ssml.h"
#include "text/utf8.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace shoal;
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    const ssml::Document document = ssml::parse(bytes, {.phonemes = (data[0] & 1) != 0});
    double pauses_s = 0;
    if (document.parts.empty() || document.parts.size() > ssml::kMaxParts) std::abort();
    for (const ssml::Part& part : document.parts) {
      text::require_utf8(part.text);
      if (part.rate < 0.25 || part.rate > 4) std::abort();
      pauses_s += part.pause_after_s;
    }
    if (pauses_s > ssml::kMaxBreaksS + 1) std::abort();
  } catch (const Error& error) {
    if (!is_callers_fault(error.code())) std::abort();
  }
  return 0;
}
