// Figures as lines for people.
#pragma once

#include "bench/load_figures.h"
#include "bench/machine.h"
#include "bench/model_figures.h"

namespace shoal::bench {

// Print to standard output.
void print(const MachineLimits& limits);
void print(const ModelFigures& figures);
void print(const LoadFigures& figures);

}  // namespace shoal::bench
