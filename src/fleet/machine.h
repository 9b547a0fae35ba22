// What this machine has for workers.
#pragma once

#include <vector>

namespace shoal::fleet {

// CPUs that this process may use, those of one NUMA node beside each other.
std::vector<int> usable_cpus();
// NVIDIA GPUs whose devices this process sees.
int visible_gpus();

}  // namespace shoal::fleet
