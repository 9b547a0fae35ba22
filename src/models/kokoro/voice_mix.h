// The voice expression of a request: a name, or a mix of several. Pure functions of strings.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"

namespace shoal::kokoro {

// The meaning of the first two letters of a published name: "af_heart" is American and female.
struct VoiceTraits {
  char language = 'a';  // a b e f h i j p z (KPipeline's language codes)
  char sex = 'f';       // f m
};
std::optional<VoiceTraits> traits_of(std::string_view name);

// The published default voice of a language; empty for a letter that is no language.
std::string_view published_default(char language);

struct VoiceMix {
  struct Part {
    std::string voice;
    double share = 1;  // of the mix; negative if it is subtracted
  };
  std::vector<Part> parts;  // by name, each once
  std::string first;        // the voice that was named first: the mix speaks its language

  bool is_one_voice() const { return parts.size() == 1 && parts[0].share == 1; }
  // Equal for expressions of the same mix, written in another order or with weights in proportion. The name,
  // where the mix is one voice.
  std::string key() const;
};

// "af_bella(2)+af_sky(1)-x": weights above 0 (default 1), divided by their sum, which includes the subtracted
// ones (as in Kokoro-FastAPI 0.8); or "a,b,c": the mean. A name may itself contain '-': the longest name that
// is_voice() knows matches. Throws Error: invalid_argument, not_found (no such voice), naming the part.
VoiceMix parse_voice_mix(std::string_view expression, FunctionRef<bool(std::string_view)> is_voice);

}  // namespace shoal::kokoro
