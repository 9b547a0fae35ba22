// One run of `shoal serve`: until a signal ends it.
#pragma once

#include "cli/engine_settings.h"

namespace shoal::cli {

// Throws Error as server::Server does. SIGHUP loads the models again, with the settings as they stand now
// where a file of them was given; if the terminal that the server was started from is gone, it ends the
// server like SIGTERM.
void run_server(const EngineSettings& settings, const ResolvedSettings& resolved);

}  // namespace shoal::cli
