// A ModelReport as lines for people (report/model_json.h: for programs).
#pragma once

#include "shoal/model.h"

namespace shoal::cli {

// To standard output. with_tensors: lists every tensor of the files.
void print_report(const ModelReport& report, bool with_tensors);

}  // namespace shoal::cli
