#include "weights/quantised.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <unordered_set>

#include "base/error.h"

namespace shoal::weights {
namespace {

constexpr std::string_view kMember = "quantization_config", kScalesEnd = ".scales";
constexpr int64_t kVersion = 1;

std::string_view precision_name(DType dtype) { return dtype == DType::f32 ? "float32" : "bfloat16"; }

template <typename... Parts>
[[noreturn]] void fail_tensor(const Checkpoint& checkpoint, const std::string& name, const Parts&... parts) {
  fail(ErrorCode::corrupt_file, checkpoint.path(), ": tensor ", name, ": ", parts...);
}

void check_scales(const Checkpoint& checkpoint, const std::string& name, TensorView scales) {
  if (scales.dtype() != DType::f32)
    fail_tensor(checkpoint, name, "expected dtype F32, found ", name_of(scales.dtype()));
  for (int64_t i = 0; i < scales.elements(); ++i) {
    const float scale = scales.as<float>()[i];
    if (!(std::isfinite(scale) && scale >= 0))
      fail_tensor(checkpoint, name, "expected finite numbers of at least 0, found ", scale);
  }
}

bool has_lowest(TensorView integers, ThreadTeam& team) {
  constexpr int64_t kIntegersGrain = int64_t{1} << 18;
  std::atomic<bool> found = false;
  const int8_t* values = integers.as<int8_t>();
  team.parallel_for(integers.elements(), kIntegersGrain, [&](int64_t begin, int64_t end, int) {
    int8_t least = 0;
    for (int64_t i = begin; i < end; ++i) least = std::min(least, values[i]);
    if (least == INT8_MIN) found = true;
  });
  return found;
}

}  // namespace

std::optional<Quantisation> Quantisation::parse(const Json& config) {
  const Json* member = config.is_object() ? config.find(kMember) : nullptr;
  if (!member || member->is_null()) return std::nullopt;
  const auto expect = [&](std::string_view key, std::string_view expected, std::string_view other = "") {
    const std::string& found = member->at(key).as_string();
    if (found != expected && found != other)
      fail(ErrorCode::unsupported, member->where(), ".", key, ": expected ", expected,
           other.empty() ? "" : " or ", other, ", found ", printable(found),
           "; quantise the original model with \"shoal quantize\"");
  };
  expect("quant_method", "shoal");
  if (const int64_t version = member->at("version").as_integer(); version != kVersion)
    fail(ErrorCode::unsupported, member->where(), ".version: expected ", kVersion, ", found ", version);
  expect("weights", "int8");
  expect("precision", precision_name(DType::f32), precision_name(DType::bf16));
  if (member->as_object().size() != 4)
    fail(ErrorCode::unsupported, member->where(), ": expected 4 members, found ", member->as_object().size());
  const bool is_wide = member->at("precision").as_string() == precision_name(DType::f32);
  return Quantisation{is_wide ? DType::f32 : DType::bf16};
}

std::optional<Quantisation> Quantisation::read(const std::string& config_json_path) {
  return parse(Json::read_file(config_json_path, kMaxConfigBytes));
}

std::string Quantisation::added_to(std::string_view config_json) const {
  const Json config = Json::parse(config_json, "config.json");
  if (!config.is_object() || config.as_object().empty() || config.find(kMember))
    fail(ErrorCode::corrupt_file, "config.json: expected an object with members, none of them ", kMember);
  const size_t last = config_json.find_last_not_of(" \t\r\n", config_json.rfind('}') - 1);
  return concat(config_json.substr(0, last + 1), ",\n \"", kMember,
                "\": {\"quant_method\": \"shoal\", \"version\": ", kVersion,
                ", \"weights\": \"int8\", \"precision\": \"", precision_name(precision), "\"}\n}\n");
}

std::string scales_name(std::string_view matrix) {
  return concat(matrix.substr(0, matrix.rfind(".weight")), kScalesEnd);
}

StoredIntegers find_integers(const Checkpoint& checkpoint, const std::string& matrix, const Shape& shape,
                             ThreadTeam* team) {
  const TensorView* integers = checkpoint.find(matrix);
  if (!integers || integers->dtype() != DType::i8 || integers->shape() != shape)
    fail_tensor(checkpoint, matrix, "expected I8 ", shape, ", found ",
                integers ? concat(name_of(integers->dtype()), " ", integers->shape()) : "none");
  const std::string scales = scales_name(matrix);
  const StoredIntegers found{*integers, checkpoint.get(scales, {shape[0]})};
  check_scales(checkpoint, scales, found.scales);
  if (team && has_lowest(*integers, *team))
    fail_tensor(checkpoint, matrix, "expected -127 to 127, found -128");
  return found;
}

void check_quantised(const Checkpoint& checkpoint, const std::optional<Quantisation>& quantisation,
                     std::span<const RequiredTensor> matrices) {
  std::unordered_set<std::string> scales;
  for (const RequiredTensor& matrix : matrices) {
    const RequiredTensor::Found found = matrix.stored_in(checkpoint);
    for (const std::string& name : found.names) {
      const TensorView view = *checkpoint.find(name);
      if (!quantisation && view.dtype() == DType::i8)
        fail_tensor(checkpoint, name, "found I8, which needs a ", kMember, " in config.json");
      scales.insert(scales_name(name));
      if (quantisation && found.problem.empty()) find_integers(checkpoint, name, view.shape(), nullptr);
    }
  }
  for (const StoredTensor& tensor : checkpoint.tensors())
    if (quantisation && tensor.name.ends_with(kScalesEnd) && !scales.contains(tensor.name))
      fail_tensor(checkpoint, tensor.name, "belongs to no matrix of 8 bits");
}

}  // namespace shoal::weights
