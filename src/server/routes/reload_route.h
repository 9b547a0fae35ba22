// POST /v1/admin/reload: the model again, or another one.
#pragma once

#include "server/routes/services.h"

namespace shoal::server {

Route reload_route();

}  // namespace shoal::server
