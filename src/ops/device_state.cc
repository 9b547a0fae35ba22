#include "ops/device_state.h"

#include "base/error.h"
#include "ops/cpu_features.h"
#include "ops/cuda_devices.h"

namespace shoal::ops {

std::optional<int64_t> free_device_memory(Device device) {
  if (device.kind == DeviceKind::cpu) return {};
  return cuda_free_memory(device.index);
}

std::optional<int64_t> total_device_memory(Device device) {
  if (device.kind == DeviceKind::cpu) return {};
  const std::vector<CudaDevice> devices = cuda_devices();
  const auto index = static_cast<size_t>(device.index);
  if (index >= devices.size()) return {};
  return devices[index].memory_bytes;
}

int multiprocessors(Device device) {
  if (device.kind == DeviceKind::cpu) return 0;
  const std::vector<CudaDevice> devices = cuda_devices();
  const auto index = static_cast<size_t>(device.index);
  return index < devices.size() ? devices[index].multiprocessors : 0;
}

std::string describe(Device device) {
  if (device.kind == DeviceKind::cpu) return "cpu";
  const std::vector<CudaDevice> devices = cuda_devices();
  const auto index = static_cast<size_t>(device.index);
  return concat("cuda:", device.index, " (", index < devices.size() ? devices[index].name : "gone", ")");
}

bool computes_by_itself(Device device) { return device.kind != DeviceKind::cpu; }

bool works_in_caches(Device device) { return device.kind == DeviceKind::cpu; }

MatrixFormat layer_format(Device device, const Formats& formats) {
  if (formats.weights == DType::i8 && !computes_by_itself(device)) return DType::i8;
  if (formats.weights == DType::u4 && !computes_by_itself(device))
    return {DType::u4, DType::i8, formats.group};
  return {formats.weights, formats.operands, formats.group};
}

bool has_products_of(Device device, DType dtype) {
  if (dtype == DType::bf16 && device.kind == DeviceKind::cpu) return cpu_isa() >= CpuIsa::avx512_bf16;
  return multiplies(device, dtype);
}

bool multiplies(Device device, MatrixFormat format) {
  if (is_quantised(format.weights)) {
    if (format.weights == DType::u4 && !is_group_of_u4(format.group)) return false;
    return computes_by_itself(device) ? size_of(format.operand) == 2 && multiplies(device, format.operand)
                                      : format.weights != DType::f8 && format.operand == DType::i8;
  }
  if (format.weights != format.operand) return false;
  if (format.operand == DType::f16) return device.kind == DeviceKind::cuda;
  return format.operand == DType::f32 || format.operand == DType::bf16;
}

}  // namespace shoal::ops
