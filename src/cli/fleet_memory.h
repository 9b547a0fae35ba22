// How much of their devices' memory the workers of a fleet get.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "fleet/child.h"
#include "fleet/plan.h"
#include "shoal/settings.h"

namespace shoal::cli {

// The flag of `shoal serve` with which it calls print_memory_need and does nothing else.
constexpr const char* kPrintNeed = "--print-memory-need";

// Prints the fleet::MemoryNeed of a server with these settings: one line of JSON. Throws the Errors of
// estimate_memory.
void print_memory_need(const ResolvedSettings& settings);

// MiB for the keys and values of each model of each worker that shares its device and has no kv_memory_mb.
// Workers that differ are asked, one after the other; `command` starts one, `sections` are those of the
// settings file. Throws Error(invalid_argument): they do not fit, or one cannot be asked.
std::map<std::string, int64_t> split_memory(
    const std::vector<fleet::WorkerPlan>& workers,
    const std::function<fleet::Command(const fleet::WorkerPlan&)>& command,
    const std::vector<ResolvedSettings::OfWorker>& sections);

}  // namespace shoal::cli
