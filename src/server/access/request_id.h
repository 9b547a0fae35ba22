// Names of requests, for headers, errors and logs.
#pragma once

#include <string>

#include "server/http/message.h"

namespace shoal::server {

// The client's own x-request-id when it is 1 to 64 letters, digits, '.', '_' or '-'; else a new one, unlike
// any other.
std::string request_id_of(const Request& head);

}  // namespace shoal::server
