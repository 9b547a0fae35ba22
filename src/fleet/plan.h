// Which workers a fleet has: a pure function of what was asked and of what the machine offers.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::fleet {

struct FleetRequest {
  std::string devices = "auto";  // "cpu", "cuda:0,cuda:1"; auto: every GPU, without one the CPU
  int per_device = 1;
  std::optional<int> workers;  // in all, in place of per_device: the first devices get one more than the last
  int base_port = 8001;        // of the first worker; each further one has the next port
  int gpus = 0;                // of this machine
  std::vector<std::optional<int>> gpu_nodes;  // the NUMA node of each GPU; none, or too few of them: unknown
  std::vector<int> cpus;                      // that the workers may use, neighbours beside each other
  std::vector<int> cpu_nodes;                 // the NUMA node of each of them; empty: there is one node
};

struct WorkerPlan {
  std::string name;        // w1, w2, ...
  std::optional<int> gpu;  // none: the CPU
  int port = 0;
  std::vector<int> cpus;  // empty: all; disjoint as far as possible
};

// Workers of one device lie beside each other. Workers on CPUs get disjoint runs of `cpus`, equal but for
// one; if there are more workers than CPUs, each gets one, in turn. Workers on GPUs get the CPUs of their
// GPU's NUMA node (all, if it is unknown or has none), shared out likewise among the GPU workers of that
// node. Throws Error(invalid_argument): unknown or repeated devices, ports above 65535.
std::vector<WorkerPlan> plan_workers(const FleetRequest& request);

}  // namespace shoal::fleet
