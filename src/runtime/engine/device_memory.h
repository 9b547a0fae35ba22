// What a device has for a model, and whether a plan fits into it.
#pragma once

#include <cstdint>
#include <span>

#include "shoal/statistics.h"
#include "tensor/tensor.h"

namespace shoal::runtime {

// Bytes that are free: the device's own, or the system's where CPU threads compute.
int64_t memory_available(Device device);

// What plans of one context allow for beside what they count: on a GPU partial sums, whose sizes follow from
// the card; on a CPU what attention takes of long sequences.
int64_t op_scratch_bytes(Device device, int threads);

// Throws Error(resource_exhausted) with the parts and what is free unless they fit into `available` bytes.
void check_fits(std::span<const MemoryPart> parts, int64_t available);

}  // namespace shoal::runtime
