// Models and voices as ElevenLabs' API lists them.
#pragma once

#include "server/body/value.h"
#include "server/routes/services.h"

namespace shoal::server {

Value eleven_models(const Models& models);
// Of all models; an id that several have stands once, for the first. Reads the folders of voices.
Value eleven_voices(const Services& services);

}  // namespace shoal::server
