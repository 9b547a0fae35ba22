// What run.json says of a run of `shoal bench serve` when it begins. docs/BENCH.md describes the names.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench/load/generator.h"
#include "bench/load/level_plan.h"
#include "cli/server_load.h"

namespace shoal::cli {

// slo: the objectives of the run, those of a sweep included. Keys and headers stay out.
nlohmann::ordered_json run_json(const ServerLoadOptions& o, const std::string& slo,
                                const load::GeneratorOptions& generator,
                                const std::vector<load::LevelPlan>& plans);

}  // namespace shoal::cli
