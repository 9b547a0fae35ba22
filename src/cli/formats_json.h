#pragma once

#include <nlohmann/json.hpp>

#include "report/engine_json.h"
#include "server/body/value.h"

namespace shoal::cli {

// Adds the members of report::format_members().
inline void add_formats(nlohmann::ordered_json& members, const FormatNames& formats) {
  members.update(nlohmann::ordered_json::parse(server::write_json({report::format_members(formats)})));
}

}  // namespace shoal::cli
