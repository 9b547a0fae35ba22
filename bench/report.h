// Figures as lines for people.
#pragma once

#include "bench/load_bench.h"
#include "bench/machine.h"
#include "bench/model_bench.h"

namespace shoal::bench {

// Print to standard output.
void print(const MachineLimits& limits);
void print(const ModelFigures& figures);
void print(const LoadFigures& figures);

}  // namespace shoal::bench
