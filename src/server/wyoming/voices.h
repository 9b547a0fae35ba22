// Who speaks in the Wyoming protocol.
#pragma once

#include "server/routes/live_messages.h"
#include "server/routes/services.h"
#include "server/wyoming/requests.h"

namespace shoal::server {

// The model and the voice that a request means: the first model that has the voice of the name (or alias);
// without a name the first voice of the language, where voices have one. Looks into the folders of voices, so
// it belongs on a worker. Throws BodyError: unsupported (a speaker), not_found.
LiveStart wyoming_start(const Services& services, const WyomingRequest& request);

// The data of `info`: every voice of every model once, with the languages that it speaks ("en-US"). The same
// rule for threads. Throws Error(unavailable) while a model is loading.
Value wyoming_info(const Services& services);

}  // namespace shoal::server
