// The engine's and the server's figures as JSON.
#pragma once

#include "server/body/value.h"
#include "server/http/transport.h"
#include "shoal/statistics.h"

namespace shoal::server {

// "starting", "ready", ...: the engine's, or "draining".
std::string state_of(const Health& engine, bool draining);

// The content of GET /v1/stats. Seconds, bytes; shares from 0 to 1. A figure without measurements is null.
Value statistics_json(const Health& engine, const TransportStatistics& transport, bool draining);

// {"used_gb", "total_gb"}; null on a CPU.
Value video_memory_json(const Health& engine);

}  // namespace shoal::server
