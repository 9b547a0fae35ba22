// What an engine tells about itself, as JSON. Seconds, bytes; shares from 0 to 1. A figure without
// measurements is null.
#pragma once

#include "server/body/value.h"
#include "shoal/engine.h"
#include "shoal/statistics.h"

namespace shoal::report {

// {part: bytes}
server::Value memory_parts_json(const std::vector<MemoryPart>& parts);
// {"used_bytes", "total_bytes"}; null on a CPU.
server::Value device_memory_json(const Health& health);

// "queue", "requests", "frames", ... "clip_cache".
server::Value::Object statistics_members(const Statistics& of);
// The members of FormatNames; null: the model has none.
server::Value::Object format_members(const FormatNames& of);
// "state", "model", format_members(), "device", "uptime_s", "gpu_available", "memory", "device_memory",
// "resident_bytes".
server::Value::Object health_members(const Health& of);

// What a model understands: the members of ModelTraits but its family.
server::Value understood_json(const ModelTraits& traits);
// The members of ModelTraits, "sample_rate_hz", and "codec": null for a model without one. Throws
// Error(unavailable).
server::Value traits_json(const Engine& engine);
server::Value self_test_json(const SelfTest& test);
server::Value phonemized_json(const Phonemized& all);

}  // namespace shoal::report
