// Numbers of JSON as a table of comma-separated values.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

namespace shoal::runs {

// The numbers and words of the rows: a heading, then a line for each row. A nested name is joined by _;
// lists, and what a member "failures" holds, have no column. The words must hold no comma, quote or line
// break.
std::string csv_of(std::span<const nlohmann::ordered_json> rows);

}  // namespace shoal::runs
