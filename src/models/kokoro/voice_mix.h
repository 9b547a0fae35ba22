// What a request may write for a voice: a name, or several mixed. Pure functions of strings.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"

namespace shoal::kokoro {

// What the first two letters of a published name say: "af_heart" is American and female.
struct VoiceTraits {
  char language = 'a';  // a b e f h i j p z (KPipeline's language codes)
  char sex = 'f';       // f m
};
std::optional<VoiceTraits> traits_of(std::string_view name);

// The published voice that speaks a language by default; empty for a letter that is none.
std::string_view published_default(char language);

struct VoiceMix {
  struct Part {
    std::string voice;
    double share = 1;  // of the mix; below 0 where it is subtracted
  };
  std::vector<Part> parts;  // by name, each once
  std::string first;        // the voice that was named first: the mix speaks its language

  bool is_one_voice() const { return parts.size() == 1 && parts[0].share == 1; }
  // Equal for expressions of the same mix, written in another order or with weights in proportion. The name,
  // where the mix is one voice.
  std::string key() const;
};

// "af_bella(2)+af_sky(1)-x": weights above 0, 1 where there is none, divided by their sum, to which those
// that are subtracted count, too (as Kokoro-FastAPI 0.8 does); or "a,b,c": the mean. A name may itself
// contain
// '-': the longest one that is_voice() knows is meant. Throws Error: invalid_argument, not_found (no such
// voice), naming the part.
VoiceMix parse_voice_mix(std::string_view expression, FunctionRef<bool(std::string_view)> is_voice);

}  // namespace shoal::kokoro
