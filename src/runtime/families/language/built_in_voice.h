// Where the voice that ships with the program lies.
#pragma once

#include <string>

namespace shoal::runtime {

// The first that exists of: $SHOAL_VOICE_DIR, share/shoal/voice beside the program's bin/, the source tree it
// was built from. Throws Error(not_found) with the places looked at.
std::string built_in_voice_dir();

}  // namespace shoal::runtime
