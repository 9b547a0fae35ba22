#include "weights/quantised.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <unordered_set>

#include "base/bf16.h"
#include "base/e4m3.h"
#include "base/error.h"
#include "tensor/formats.h"

namespace shoal::weights {
namespace {

constexpr std::string_view kMember = "quantization_config", kScalesEnd = ".scales", kMinimaEnd = ".minima";
constexpr std::string_view kOriginal = "original";  // weights that are as they were
constexpr int64_t kVersion = 1, kVersionWithCodec = 2;

std::string_view precision_name(DType dtype) { return dtype == DType::f32 ? "float32" : "bfloat16"; }

template <typename... Parts>
[[noreturn]] void fail_tensor(const Checkpoint& checkpoint, const std::string& name, const Parts&... parts) {
  fail(ErrorCode::corrupt_file, checkpoint.path(), ": tensor ", name, ": ", parts...);
}

// The largest weight: with larger ones what GPUs multiply scales by would overflow.
constexpr float kMostWeight = 65504;  // of f16

// Numbers from least to most.
void check_numbers(const Checkpoint& checkpoint, const std::string& name, TensorView numbers, DType dtype,
                   float least, float most) {
  if (numbers.dtype() != dtype)
    fail_tensor(checkpoint, name, "expected dtype ", name_of(dtype), ", found ", name_of(numbers.dtype()));
  for (int64_t i = 0; i < numbers.elements(); ++i) {
    const float number = dtype == DType::f32 ? numbers.as<float>()[i] : bf16_to_float(numbers.as<Bf16>()[i]);
    if (!(least <= number && number <= most))
      fail_tensor(checkpoint, name, "expected finite numbers of at least ", least, " and at most ", most,
                  ", found ", number);
  }
}

// Whether one of the bytes, without the bits that are not in `mask`, is `wanted`.
bool has_byte(TensorView bytes, uint8_t mask, uint8_t wanted, ThreadTeam& team) {
  constexpr int64_t kBytesGrain = int64_t{1} << 18;
  std::atomic<bool> found = false;
  const auto* values = static_cast<const uint8_t*>(bytes.data());
  team.parallel_for(bytes.elements(), kBytesGrain, [&](int64_t begin, int64_t end, int) {
    uint8_t any = 0;
    for (int64_t i = begin; i < end; ++i) any = static_cast<uint8_t>(any | ((values[i] & mask) == wanted));
    if (any) found = true;
  });
  return found;
}

// As "weights" has them.
constexpr std::pair<std::string_view, DType> kFormats[] = {
    {"int8", DType::i8}, {"int4", DType::u4}, {"fp8", DType::f8}};

std::string_view format_name(DType weights) {
  return std::ranges::find(kFormats, weights, &std::pair<std::string_view, DType>::second)->first;
}

}  // namespace

std::optional<Quantisation> Quantisation::parse(const Json& config) {
  const Json* member = config.is_object() ? config.find(kMember) : nullptr;
  if (!member || member->is_null()) return std::nullopt;
  const auto refuse = [&](std::string_view key, std::string_view expected) {
    fail(ErrorCode::unsupported, member->where(), ".", key, ": expected ", expected, ", found ",
         printable(member->at(key).as_string()), "; quantise the original model with \"shoal quantize\"");
  };
  if (member->at("quant_method").as_string() != "shoal") refuse("quant_method", "shoal");
  const int64_t version = member->at("version").as_integer();
  if (version != kVersion && version != kVersionWithCodec)
    fail(ErrorCode::unsupported, member->where(), ".version: expected ", kVersion, " or ", kVersionWithCodec,
         ", found ", version);
  Quantisation found;
  found.codec = version == kVersionWithCodec;
  if (found.codec && member->at("codec").as_string() != "int8") refuse("codec", "int8");
  const std::string &weights = member->at("weights").as_string(),
                    &precision = member->at("precision").as_string();
  const auto* const format =
      std::ranges::find(kFormats, std::string_view(weights), &std::pair<std::string_view, DType>::first);
  if (found.codec && weights == kOriginal)
    found.weights.reset();
  else if (format == std::end(kFormats))
    refuse("weights", "int8, int4 or fp8");
  else
    found.weights = format->second;
  if (precision == precision_name(DType::f32))
    found.precision = DType::f32;
  else if (precision != precision_name(found.precision))
    refuse("precision", "float32 or bfloat16");
  if (found.weights == DType::u4) {
    found.group = member->at("group").as_integer();
    if (!is_group_of_u4(found.group))
      fail(ErrorCode::unsupported, member->where(), ".group: expected 32, 64 or 128, found ", found.group);
  }
  if (const size_t members = 4u + (found.group > 0) + found.codec; member->as_object().size() != members)
    fail(ErrorCode::unsupported, member->where(), ": expected ", members, " members, found ",
         member->as_object().size());
  return found;
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
                "\": {\"quant_method\": \"shoal\", \"version\": ", codec ? kVersionWithCodec : kVersion,
                ", \"weights\": \"", weights ? format_name(*weights) : kOriginal, "\"",
                weights == DType::u4 ? concat(", \"group\": ", group) : "", ", \"precision\": \"",
                precision_name(precision), "\"", codec ? ", \"codec\": \"int8\"" : "", "}\n}\n");
}

std::string scales_name(std::string_view matrix) {
  return concat(matrix.substr(0, matrix.rfind(".weight")), kScalesEnd);
}

std::string minima_name(std::string_view matrix) {
  return concat(matrix.substr(0, matrix.rfind(".weight")), kMinimaEnd);
}

StoredIntegers find_integers(const Checkpoint& checkpoint, const std::string& matrix, const Shape& shape,
                             ThreadTeam* team, DType dtype, int outputs_axis) {
  const TensorView* integers = checkpoint.find(matrix);
  if (!integers || integers->dtype() != dtype || integers->shape() != shape)
    fail_tensor(checkpoint, matrix, "expected ", name_of(dtype), " ", shape, ", found ",
                integers ? concat(name_of(integers->dtype()), " ", integers->shape()) : "none");
  const std::string scales = scales_name(matrix);
  const StoredIntegers found{*integers, checkpoint.get(scales, {shape[outputs_axis]}), {}};
  const float largest = dtype == DType::f8 ? kE4m3Most : 127;
  check_numbers(checkpoint, scales, found.scales, DType::f32, 0, kMostWeight / largest);
  if (team && dtype == DType::i8 && has_byte(*integers, 0xff, 0x80, *team))
    fail_tensor(checkpoint, matrix, "expected -127 to 127, found -128");
  if (team && dtype == DType::f8 && has_byte(*integers, 0x7f, kE4m3Nan, *team))
    fail_tensor(checkpoint, matrix, "expected numbers, found NaN");
  return found;
}

StoredIntegers find_nibbles(const Checkpoint& checkpoint, const std::string& matrix, const Shape& shape,
                            int64_t group) {
  const TensorView* nibbles = checkpoint.find(matrix);
  const Shape expected{shape[0], shape[1] / 2};
  if (!nibbles || nibbles->dtype() != DType::u8 || nibbles->shape() != expected || shape[1] % 2 != 0)
    fail_tensor(checkpoint, matrix, "expected U8 ", expected, ", found ",
                nibbles ? concat(name_of(nibbles->dtype()), " ", nibbles->shape()) : "none");
  const std::string scales = scales_name(matrix), minima = minima_name(matrix);
  const TensorView* found = checkpoint.find(scales);
  const auto groups_of = [&](int64_t inputs) { return (shape[1] + inputs - 1) / inputs; };
  const int64_t groups = group > 0                     ? groups_of(group)
                         : found && found->rank() == 2 ? found->dim(1)
                                                       : groups_of(kUsualGroup);
  const StoredIntegers stored{*nibbles, checkpoint.get(scales, {shape[0], groups}),
                              checkpoint.get(minima, {shape[0], groups})};
  check_numbers(checkpoint, scales, stored.scales, DType::bf16, 0, kMostWeight / 15);
  check_numbers(checkpoint, minima, stored.minima, DType::bf16, -kMostWeight, kMostWeight);
  return stored;
}

namespace {

// All of the checkpoint's scales and minima must be among `companions`.
void check_companions(const Checkpoint& checkpoint, const std::unordered_set<std::string>& companions) {
  for (const StoredTensor& tensor : checkpoint.tensors())
    if ((tensor.name.ends_with(kScalesEnd) || tensor.name.ends_with(kMinimaEnd)) &&
        !companions.contains(tensor.name))
      fail_tensor(checkpoint, tensor.name, "belongs to no matrix of 8 or 4 bits");
}

void check_no_integers(const Checkpoint& checkpoint, const std::string& name) {
  const DType dtype = checkpoint.find(name)->dtype();
  if (has_output_scales(dtype) || dtype == DType::u8)
    fail_tensor(checkpoint, name, "found ", name_of(dtype), ", which needs a ", kMember, " in config.json");
}

}  // namespace

void check_quantised(const Checkpoint& checkpoint, const std::optional<Quantisation>& quantisation,
                     std::span<const RequiredTensor> matrices) {
  const bool narrow = quantisation && quantisation->weights;
  std::unordered_set<std::string> companions;
  for (const RequiredTensor& matrix : matrices) {
    const RequiredTensor::Found found = matrix.stored_in(checkpoint);
    for (const std::string& name : found.names) {
      const TensorView view = *checkpoint.find(name);
      if (!narrow) check_no_integers(checkpoint, name);
      companions.insert(scales_name(name));
      if (narrow && quantisation->weights == DType::u4) companions.insert(minima_name(name));
      if (!narrow || !found.problem.empty()) continue;
      if (quantisation->weights == DType::u4)
        find_nibbles(checkpoint, name, {view.dim(0), matrix.shape[1]}, quantisation->group);
      else
        find_integers(checkpoint, name, {view.dim(0), matrix.shape[1]}, nullptr, *quantisation->weights);
    }
  }
  if (narrow) check_companions(checkpoint, companions);
}

void check_quantised_codec(const Checkpoint& checkpoint, bool in_8_bits,
                           std::span<const RequiredTensor> required) {
  std::unordered_set<std::string> companions;
  for (const RequiredTensor& tensor : required) {
    const RequiredTensor::Found found = tensor.stored_in(checkpoint);
    if (!in_8_bits || !tensor.outputs_axis) {
      for (const std::string& name : found.names) check_no_integers(checkpoint, name);
      continue;
    }
    const std::string name = tensor.weight_normed ? tensor.name + ".weight" : tensor.name;
    companions.insert(scales_name(name));
    if (found.problem.empty())
      find_integers(checkpoint, name, tensor.shape, nullptr, DType::i8, *tensor.outputs_axis);
  }
  if (in_8_bits) check_companions(checkpoint, companions);
}

}  // namespace shoal::weights
