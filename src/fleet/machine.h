// What this machine has for workers.
#pragma once

#include <cstdint>
#include <sys/types.h>
#include <vector>

namespace shoal::fleet {

// CPUs that this process may use, those of one NUMA node beside each other.
std::vector<int> usable_cpus();
// Memory that a process has in RAM; 0: there is none of that number.
int64_t resident_bytes_of(pid_t pid);
// NVIDIA GPUs whose devices this process sees.
int visible_gpus();

}  // namespace shoal::fleet
