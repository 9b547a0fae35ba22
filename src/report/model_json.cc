#include "report/model_json.h"

#include <algorithm>
#include <utility>

#include "report/engine_json.h"
#include "report/json_parts.h"

namespace shoal::report {
namespace {

Value tensor_json(const TensorReport& tensor) {
  return {Object{{"name", foreign_text(tensor.name)},
                 {"dtype", {tensor.dtype}},
                 {"shape", counts(tensor.shape)},
                 {"bytes", {tensor.bytes}}}};
}

Value checkpoint_json(const CheckpointReport& report, bool with_tensors) {
  Object parts;
  for (const PartReport& part : report.parts)
    parts.emplace_back(part.name, Value{Object{{"parameters", {part.parameters}}, {"bytes", {part.bytes}}}});
  Object members{{"file", foreign_text(report.path)},         {"file_bytes", {report.file_bytes}},
                 {"tensors", count(report.tensors.size())},   {"parts", {std::move(parts)}},
                 {"unused_tensors", {report.unused_tensors}}, {"problems", texts(report.problems)}};
  if (with_tensors) {
    Value::Array tensors;
    for (const TensorReport& tensor : report.tensors) tensors.push_back(tensor_json(tensor));
    members.emplace_back("tensor_list", Value{std::move(tensors)});
  }
  return {std::move(members)};
}

Value value_json(int64_t value) { return {value}; }
Value value_json(const std::vector<std::string>& names) { return texts(names); }

// "language model" -> "language_model"
std::string json_key(std::string name) {
  std::ranges::replace(name, ' ', '_');
  return name;
}

}  // namespace

Value model_json(const ModelReport& report, bool with_tensors) {
  Object members{
      {"dir", foreign_text(report.dir)}, {"family", {report.family}}, {"precision", {report.precision}}};
  if (!report.weights.empty()) members.emplace_back("weights", Value{report.weights});
  for (const CheckpointReport& checkpoint : report.checkpoints)
    members.emplace_back(json_key(checkpoint.name), checkpoint_json(checkpoint, with_tensors));
  for (const ReportValue& each : report.values)
    members.emplace_back(each.name,
                         std::visit([](const auto& held) { return value_json(held); }, each.value));
  if (report.problem) members.emplace_back("problem", foreign_text(report.problem->message()));
  return {std::move(members)};
}

Value memory_json(const MemoryEstimate& estimate) {
  Object members{{"device", {estimate.device}}};
  append(members, format_members(estimate.formats));
  for (const auto& [name, value] : estimate.figures) members.emplace_back(name, Value{value});
  members.emplace_back("bytes", memory_parts_json(estimate.parts));
  members.emplace_back("total_bytes", Value{estimate.total_bytes()});
  members.emplace_back("available_bytes", Value{estimate.available_bytes});
  members.emplace_back("fits", Value{estimate.fits()});
  return {std::move(members)};
}

}  // namespace shoal::report
