// Replaces the web page in a program that was built without it.
#include "server/page/page.h"

namespace shoal::server {

std::span<const Asset> assets() { return {}; }

}  // namespace shoal::server
