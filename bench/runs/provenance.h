// Where a run comes from: program, machine, command, and what it was told to do.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace shoal::runs {

// Members of run.json: "program", "version", "commit", "command" (the words of this process,
// without keys and headers), "machine".
nlohmann::ordered_json provenance();

// 16 hexadecimal digits over the settings of a run, in the order given: equal for runs that were told to do
// the same. FNV-1a, 64 bits, of the JSON.
std::string config_hash(const nlohmann::ordered_json& settings);

}  // namespace shoal::runs
