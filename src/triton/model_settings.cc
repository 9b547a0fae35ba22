#include "triton/model_settings.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/error.h"
#include "base/printable.h"
#include "server/body/value.h"

namespace shoal::triton {
namespace {

using server::Value;

struct Tensor {
  std::string_view name, type;
};
constexpr std::array<Tensor, 3> kInputs = {
    {{"text_input", "TYPE_STRING"}, {"reference_audio", "TYPE_STRING"}, {"reference_text", "TYPE_STRING"}}};
constexpr std::array<Tensor, 3> kOutputs = {
    {{"audio", "TYPE_FP32"}, {"audio_file", "TYPE_STRING"}, {"sample_rate", "TYPE_INT32"}}};

std::string text_at(const Value& object, std::string_view name) {
  const Value* found = object.find(name);
  const auto* text = found ? found->as<std::string>() : nullptr;
  return text ? *text : "";
}

const Value::Array& list_at(const Value& config, const char* name) {
  static const Value::Array kNone;
  const Value* found = config.find(name);
  if (!found) return kNone;
  const auto* list = found->as<Value::Array>();
  if (!list) fail(ErrorCode::invalid_argument, name, ": expected a list");
  return *list;
}

void check_tensors(const Value& config, const char* list, const std::array<Tensor, 3>& known) {
  for (const Value& tensor : list_at(config, list)) {
    const std::string name = text_at(tensor, "name"), type = text_at(tensor, "data_type");
    const auto found = std::ranges::find(known, name, &Tensor::name);
    if (found == known.end())
      fail(ErrorCode::invalid_argument, list, ": there is no tensor \"", printable(name), "\"; expected ",
           known[0].name, ", ", known[1].name, " or ", known[2].name);
    if (type != found->type)
      fail(ErrorCode::invalid_argument, list, ": ", name, ": expected ", found->type, ", got \"",
           printable(type), "\"");
  }
}

bool is_decoupled(const Value& config) {
  const Value* policy = config.find("model_transaction_policy");
  const Value* decoupled = policy ? policy->find("decoupled") : nullptr;
  return decoupled && *decoupled == Value{true};
}

bool is_batched(const Value& config) {
  const Value* size = config.find("max_batch_size");
  const auto* number = size ? size->as<int64_t>() : nullptr;
  if (size && !number) fail(ErrorCode::invalid_argument, "max_batch_size: expected an integer");
  return number && *number > 0;
}

// parameters { key: "device" value { string_value: "cuda:0" } }
void take_parameters(const Value& config, ModelSettings& into) {
  const Value* parameters = config.find("parameters");
  if (!parameters) return;
  const auto* members = parameters->as<Value::Object>();
  if (!members) fail(ErrorCode::invalid_argument, "parameters: expected an object");
  for (const auto& [name, value] : *members) {
    const Value* text = value.find("string_value");
    if (!text || !text->as<std::string>())
      fail(ErrorCode::invalid_argument, "parameters: ", printable(name), ": expected a string_value");
    into.settings.emplace_back(name, *text->as<std::string>());
  }
}

bool has_setting(const ModelSettings& all, std::string_view name) {
  return std::ranges::any_of(all.settings, [&](const auto& setting) { return setting.first == name; });
}

// Instances share one engine: of the groups only the device counts.
void take_device(const Value& config, ModelSettings& into) {
  std::string device;
  for (const Value& group : list_at(config, "instance_group")) {
    const std::string kind = text_at(group, "kind");
    const Value::Array& gpus = list_at(group, "gpus");
    std::string wanted = kind == "KIND_CPU" ? "cpu" : "";
    for (const Value& gpu : gpus) {
      const auto* index = gpu.as<int64_t>();
      if (!index || *index < 0)
        fail(ErrorCode::invalid_argument, "instance_group: gpus: expected numbers of GPUs");
      if (!wanted.empty() && wanted != concat("cuda:", *index))
        fail(ErrorCode::unsupported, "instance_group: gpus: an engine has one GPU; make a model for each");
      wanted = concat("cuda:", *index);
    }
    if (wanted.empty()) continue;
    if (!device.empty() && device != wanted)
      fail(ErrorCode::unsupported, "instance_group: an engine has one device; make a model for each");
    device = wanted;
  }
  if (!device.empty() && !has_setting(into, "device")) into.settings.emplace_back("device", device);
}

}  // namespace

ModelSettings read_model_settings(std::string_view json, const std::string& folder) {
  const Value config = server::read_json(json);
  if (!config.as<Value::Object>()) fail(ErrorCode::invalid_argument, "config: expected an object");
  if (config.find("sequence_batching"))
    fail(ErrorCode::unsupported, "sequence_batching: a speech is one request; leave it out");
  if (config.find("ensemble_scheduling"))
    fail(ErrorCode::unsupported, "ensemble_scheduling: is of ensembles, which have no backend");
  check_tensors(config, "input", kInputs);
  check_tensors(config, "output", kOutputs);
  ModelSettings read{
      .settings = {}, .decoupled = is_decoupled(config), .batched = is_batched(config), .notes = {}};
  take_parameters(config, read);
  take_device(config, read);
  if (!has_setting(read, "model") && std::filesystem::exists(std::filesystem::path(folder) / "config.json"))
    read.settings.emplace_back("model", folder);
  if (config.find("dynamic_batching"))
    read.notes.emplace_back(
        "dynamic_batching: requests join the engine's running batch at its next step, however Triton groups "
        "them; "
        "max_queue_delay_microseconds only delays them: leave dynamic_batching out");
  if (!read.decoupled)
    read.notes.emplace_back(
        "the model is not decoupled: each request is answered once, with all of its sound");
  return read;
}

}  // namespace shoal::triton
