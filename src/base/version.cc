#include "base/version.h"

namespace shoal {

std::string version() { return SHOAL_VERSION; }

}  // namespace shoal
