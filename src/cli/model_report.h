// A ModelReport as lines for people, and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "shoal/model.h"

namespace shoal::cli {

// To standard output. with_tensors: lists every tensor of the files.
void print_report(const ModelReport& report, bool with_tensors);
nlohmann::ordered_json report_json(const ModelReport& report, bool with_tensors);

}  // namespace shoal::cli
