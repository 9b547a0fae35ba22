// One run of `shoal serve`: until a signal ends it.
#pragma once

#include "cli/engine_settings.h"

namespace shoal::cli {

// Throws the Errors of server::Server. SIGHUP reloads the models, with the current content of the settings
// file if one was given; if the terminal that started the server is gone, SIGHUP stops it like SIGTERM.
void run_server(const EngineSettings& settings, const ResolvedSettings& resolved);

}  // namespace shoal::cli
