// Collects the fields of a request that the model ignores.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "shoal/speech_request.h"

namespace shoal::runtime {

// Collects a warning for each such field, or refuses the first one if the request is strict.
class UnusedFields {
 public:
  // Starts with those that the caller names. Throws as add().
  explicit UnusedFields(const SpeechRequest& request);

  // "FIELD: has no effect: this model WHY". Throws Error(unsupported) that names the field when the request
  // is strict.
  void add(std::string_view field, std::string_view why);
  std::vector<std::string> take() && { return std::move(remarks_); }

 private:
  void tell(std::string_view field, std::string_view why);

  const bool strict_;
  std::vector<std::string> remarks_;
};

}  // namespace shoal::runtime
