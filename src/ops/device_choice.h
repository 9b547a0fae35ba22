// Which device a configuration means.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "ops/cuda_devices.h"
#include "tensor/tensor.h"

namespace shoal::ops {

struct DeviceChoice {
  Device device;
  std::string warning;  // for the user if the choice may surprise; usually empty
};

// "auto": the first GPU that this version can compute on (compute capability 8.0 or later), or else the CPU,
// with a warning in a build with CUDA. "cuda": the same GPU. "cuda:N": GPU N. "cpu". Throws Error that says
// what to do: unsupported (a build without CUDA, a GPU that is too old), unavailable (no such GPU),
// invalid_argument (another name).
DeviceChoice choose_device(std::string_view name, std::span<const CudaDevice> devices, bool with_cuda);

// The same for this machine and build; logs the warning.
Device choose_device(std::string_view name);

// What "auto" is on this machine, without a word.
Device usual_device();

// The name that gives this device: "cpu", "cuda:N".
std::string setting_of(Device device);

}  // namespace shoal::ops
