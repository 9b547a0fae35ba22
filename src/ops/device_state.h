// What a device can be asked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tensor/formats.h"
#include "tensor/tensor.h"

namespace shoal::ops {

// Bytes that are free on a GPU now; nothing for the CPU, whose memory is the system's.
std::optional<int64_t> free_device_memory(Device device);

// Bytes of a GPU in all; nothing for the CPU.
std::optional<int64_t> total_device_memory(Device device);

// "cpu", "cuda:0 (NVIDIA H200)".
std::string describe(Device device);

// Whether work on the device runs beside the host's threads, so that the host has nothing to compute itself.
bool computes_by_itself(Device device);

// Whether work is best cut into pieces whose activations stay in the caches of the context's workers. A GPU
// wants as many rows as there are.
bool works_in_caches(Device device);

// Whether the device has GEMMs with matrices of that format.
bool multiplies(Device device, MatrixFormat format);

}  // namespace shoal::ops
