#include "runtime/engine/unused_fields.h"

#include <algorithm>

#include "base/error.h"

namespace shoal::runtime {

UnusedFields::UnusedFields(const SpeechRequest& request) : strict_(request.strict) {
  for (const std::string_view unused : request.unused) {
    const size_t colon = std::min(unused.find(": "), unused.size());
    tell(unused.substr(0, colon), unused.substr(std::min(colon + 2, unused.size())));
  }
}

void UnusedFields::add(std::string_view field, std::string_view why) {
  tell(field, concat("this model ", why));
}

void UnusedFields::tell(std::string_view field, std::string_view why) {
  if (strict_) fail(ErrorCode::unsupported, field, ": ", why);
  remarks_.push_back(concat(field, ": has no effect: ", why));
}

}  // namespace shoal::runtime
