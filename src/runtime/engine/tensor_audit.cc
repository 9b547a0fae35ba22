#include "runtime/engine/tensor_audit.h"

#include <algorithm>

#include "tensor/formats.h"
#include "weights/quantised.h"

namespace shoal::runtime {
namespace {

PartReport& part_called(CheckpointReport& report, const std::string& name) {
  const auto found = std::ranges::find(report.parts, name, &PartReport::name);
  if (found != report.parts.end()) return *found;
  report.parts.push_back({.name = name});
  return report.parts.back();
}

TensorReport report_of(const weights::StoredTensor& tensor) {
  const auto dims = tensor.view.shape().dims();
  return {.name = tensor.name,
          .dtype = std::string(name_of(tensor.view.dtype())),
          .shape = {dims.begin(), dims.end()},
          .bytes = tensor.view.bytes()};
}

// What a tensor takes if it is kept in 8 or 4 bits, with scales and minima. count: of all these tensors.
struct Integers {
  int64_t bytes = 0;
  size_t count = 0;
};

Integers integers_of(const weights::RequiredTensor::Found& found, const weights::Checkpoint& checkpoint) {
  Integers all;
  for (const std::string& name : found.names) {
    const DType dtype = checkpoint.find(name)->dtype();
    if (!has_output_scales(dtype) && dtype != DType::u8) continue;
    for (const std::string& part : {name, weights::scales_name(name), weights::minima_name(name)})
      if (const TensorView* view = checkpoint.find(part)) all.bytes += view->bytes(), ++all.count;
  }
  return all;
}

}  // namespace

CheckpointReport audit(std::string name, const weights::Checkpoint& checkpoint, const std::string& path,
                       std::span<const weights::RequiredTensor> required, DType dtype) {
  CheckpointReport report{.name = std::move(name), .path = path, .file_bytes = checkpoint.file_bytes()};
  size_t used = 0;
  for (const weights::RequiredTensor& tensor : required) {
    const weights::RequiredTensor::Found found = tensor.stored_in(checkpoint);
    if (!found.problem.empty()) report.problems.push_back(found.problem);
    PartReport& part = part_called(report, tensor.part);
    part.parameters += tensor.shape.elements();
    const Integers integers = integers_of(found, checkpoint);
    used += integers.count > 0 ? integers.count : found.names.size();
    part.bytes += integers.count > 0 ? integers.bytes : tensor.shape.elements() * size_of(dtype);
  }
  for (const weights::StoredTensor& tensor : checkpoint.tensors())
    report.tensors.push_back(report_of(tensor));
  report.unused_tensors = static_cast<int64_t>(report.tensors.size() - std::min(used, report.tensors.size()));
  return report;
}

CheckpointReport sizes_of_random(std::string name, std::span<const weights::RequiredTensor> required,
                                 DType dtype) {
  CheckpointReport report{.name = std::move(name), .path = "random weights"};
  for (const weights::RequiredTensor& tensor : required) {
    PartReport& part = part_called(report, tensor.part);
    part.parameters += tensor.shape.elements();
    part.bytes += tensor.shape.elements() * size_of(dtype);
  }
  return report;
}

int64_t part_bytes(const CheckpointReport& report) {
  int64_t bytes = 0;
  for (const PartReport& part : report.parts) bytes += part.bytes;
  return bytes;
}

}  // namespace shoal::runtime
