// Queries about a device.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tensor/formats.h"
#include "tensor/tensor.h"

namespace shoal::ops {

// Free bytes on a GPU now; absent for the CPU, whose memory is the system's.
std::optional<int64_t> free_device_memory(Device device);

// Total bytes of a GPU; absent for the CPU.
std::optional<int64_t> total_device_memory(Device device);

// Multiprocessors of a GPU; 0 for the CPU, and for a GPU that is not there.
int multiprocessors(Device device);

// "cpu", "cuda:0 (NVIDIA H200)".
std::string describe(Device device);

// Whether the device computes asynchronously, so that the host's threads need not compute.
bool computes_by_itself(Device device);

// Whether work is best cut into pieces whose activations stay in the caches of the context's workers. A GPU
// prefers as many rows as there are.
bool works_in_caches(Device device);

// Whether the device has GEMMs with matrices of that format.
bool multiplies(Device device, MatrixFormat format);
// Whether the device has instructions for matrices of that dtype: bf16 of AVX512-BF16 or AMX (SHOAL_CPU_ISA
// counts) or of a GPU. Without them multiplies() may hold all the same: the operands are widened first.
bool has_products_of(Device device, DType dtype);
// How the device multiplies a model's layers: weights of 8 and 4 bits by operands of 8 bits on a CPU, by the
// model's operands on a GPU.
MatrixFormat layer_format(Device device, const Formats& formats);

}  // namespace shoal::ops
