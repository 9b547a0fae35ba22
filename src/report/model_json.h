// What is known of a model before an engine loads it, as JSON.
#pragma once

#include "server/body/value.h"
#include "shoal/model.h"

namespace shoal::report {

// with_tensors: lists every tensor of the files.
server::Value model_json(const ModelReport& report, bool with_tensors);
server::Value memory_json(const MemoryEstimate& estimate);

}  // namespace shoal::report
