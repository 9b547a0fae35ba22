// Which voice `--voice NAME` means.
#pragma once

#include <string>
#include <vector>

#include "shoal/settings.h"

namespace shoal::cli {

// The voice for the engine, "" the model's own, by the server's rules (server/routes/voice_names.h): the
// voice of that name; else the target of voice_aliases; else "default", "built-in" and OpenAI's names. With
// reference clips an alias has no effect. No model is loaded. Throws Error(not_found) that says what is near:
// there is no such voice. A mix of voices is left to the engine.
std::string chosen_voice(const std::string& name, const ResolvedSettings& settings, bool with_references);

// Everything that --voice takes with these settings, but for mixes: voices, then aliases.
std::vector<std::string> voice_names(const ResolvedSettings& settings);

}  // namespace shoal::cli
