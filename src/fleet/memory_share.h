// How the workers of one device share its memory: pure functions of what each of them says it needs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace shoal::fleet {

struct MemoryNeed {
  int64_t free_bytes = 0;          // on its device, as it finds them
  int64_t fixed_bytes = 0;         // that it takes in any case
  int flexible = 0;                // parts besides that take as much as they are told
  double fraction = 0;             // of what is left over that such a part would take for itself
  int64_t most_bytes = INT64_MAX;  // that such a part has use for
};

struct DeviceMemory {
  std::string device;               // for people: "cuda:0"
  std::vector<MemoryNeed> workers;  // that are on it
  // What a process takes of the device before its first need; each has found its own taken already.
  int64_t bytes_of_a_process = 0;
};

// Bytes for each flexible part of each worker, in order. What the fixed bytes of all leave of the most that
// any of them found free is divided by the number of flexible parts, and each gets its fraction of that, or
// what it has use for.
// Throws Error(invalid_argument) with the numbers if the fixed bytes alone do not fit.
std::vector<int64_t> share_memory(const DeviceMemory& device);

}  // namespace shoal::fleet
