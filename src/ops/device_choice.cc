#include "ops/device_choice.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/log.h"

namespace shoal::ops {
namespace {

constexpr int kOldestMajor = 8;  // asynchronous copies and bf16 products in the tensor cores

bool usable(const CudaDevice& device) { return device.major >= kOldestMajor; }

// "cuda:0 (NVIDIA GeForce GTX 1080) has compute capability 6.1, and 8.0 is needed"
std::string too_old(std::span<const CudaDevice> devices, size_t index) {
  const CudaDevice& device = devices[index];
  return concat("cuda:", index, " (", device.name, ") has compute capability ", device.major, ".",
                device.minor, ", and ", kOldestMajor, ".0 is needed");
}

// The reason why no GPU can be used.
std::string nothing_usable(std::span<const CudaDevice> devices) {
  if (devices.empty()) return "no NVIDIA GPU was found, or no driver for it";
  return too_old(devices, 0);
}

Device first_usable(std::span<const CudaDevice> devices) {
  const auto found = std::ranges::find_if(devices, usable);
  if (found == devices.end()) {
    fail(devices.empty() ? ErrorCode::unavailable : ErrorCode::unsupported,
         "device: ", nothing_usable(devices),
         devices.empty() ? "; see whether nvidia-smi lists one, or use cpu" : "; use cpu");
  }
  return {DeviceKind::cuda, static_cast<int>(found - devices.begin())};
}

Device numbered(std::string_view name, std::span<const CudaDevice> devices) {
  const std::string_view digits = name.substr(std::string_view("cuda:").size());
  size_t index = 0;
  const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  if (status != std::errc() || end != digits.data() + digits.size()) {
    fail(ErrorCode::invalid_argument, "device: expected cuda:N, got \"", name, "\"");
  }
  if (devices.empty()) return first_usable(devices);  // which throws why
  if (index >= devices.size()) {
    fail(ErrorCode::unavailable, "device: ", name, " was asked for, and there is cuda:0",
         devices.size() > 1 ? concat(" to cuda:", devices.size() - 1) : "", " only");
  }
  if (!usable(devices[index])) fail(ErrorCode::unsupported, "device: ", too_old(devices, index), "; use cpu");
  return {DeviceKind::cuda, static_cast<int>(index)};
}

}  // namespace

DeviceChoice choose_device(std::string_view name, std::span<const CudaDevice> devices, bool with_cuda) {
  if (name == "cpu" || (name == "auto" && !with_cuda)) return {};
  if (name == "auto") {
    if (std::ranges::any_of(devices, usable)) return {.device = first_usable(devices), .warning = {}};
    return {.device = {},
            .warning =
                concat("device: ", nothing_usable(devices), "; computing on the CPU, which is much slower")};
  }
  if (name != "cuda" && !name.starts_with("cuda:")) {
    fail(ErrorCode::invalid_argument, "device: expected auto, cpu, cuda or cuda:N, got \"", name, "\"");
  }
  if (!with_cuda) {
    fail(ErrorCode::unsupported,
         "device: this build computes on the CPU only; use cpu, or build with the CMake preset cuda");
  }
  return {.device = name == "cuda" ? first_usable(devices) : numbered(name, devices), .warning = {}};
}

Device choose_device(std::string_view name) {
  if (name == "cpu") return {};  // without waking a driver
  DeviceChoice choice = choose_device(name, cuda_devices(), built_with_cuda());
  if (!choice.warning.empty()) log(LogLevel::warning, choice.warning);
  return choice.device;
}

Device usual_device() { return choose_device("auto", cuda_devices(), built_with_cuda()).device; }

std::string setting_of(Device device) {
  return device.kind == DeviceKind::cpu ? "cpu" : concat("cuda:", device.index);
}

}  // namespace shoal::ops
