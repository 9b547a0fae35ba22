// What this machine has for workers.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace shoal::fleet {

// CPUs that this process may use, those of one NUMA node beside each other.
std::vector<int> usable_cpus();
int node_of_cpu(int cpu);  // its NUMA node; 0 on a machine without NUMA
// The NUMA node of an NVIDIA GPU: a number (in the order of PCI addresses, CUDA's for GPUs of one kind) or a
// UUID, as CUDA_VISIBLE_DEVICES has them; none if the driver does not say.
std::optional<int> node_of_gpu(std::string_view name);
// Memory that a process has in RAM; 0: there is none of that number.
int64_t resident_bytes_of(pid_t pid);
// NVIDIA GPUs whose devices this process sees.
int visible_gpus();

}  // namespace shoal::fleet
