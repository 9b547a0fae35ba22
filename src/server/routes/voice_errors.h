// Errors of the folder of voices, as clients may see them.
#pragma once

#include <string_view>

#include "server/access/error_style.h"
#include "server/routes/services.h"

namespace shoal::server {

// Where a client looked for a voice.
struct LookedIn {
  const Voices& voices;
  std::string_view listed_at;  // the path that lists them
};

// The same error without names of files, which clients must not see (then the log gets it, with the request);
// of a full disk a 507; of an unknown voice the nearest name. Looks into the folder of voices.
HttpError told_of_voices(Services& services, const Request& request, const Error& error,
                         const LookedIn& where);

}  // namespace shoal::server
