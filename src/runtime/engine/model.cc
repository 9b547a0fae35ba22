#include "shoal/model.h"

#include "base/error.h"
#include "ops/device_choice.h"
#include "runtime/engine/device_memory.h"
#include "runtime/engine/family.h"
#include "runtime/engine/speaker_voices.h"
#include "shoal/forced_logits.h"
#include "shoal/quantise.h"
#include "tensor/formats.h"

namespace shoal {

ModelTraits traits_of(const std::string& model) { return runtime::family_of(model).traits(model); }

std::vector<std::string> validate_request(const SpeechRequest& request, const std::string& model) {
  const runtime::Family& family = runtime::family_of(model);
  std::vector<std::string> warnings = family.validate(request);
  const ModelTraits traits = family.traits(model);
  if (!traits.family.empty()) runtime::check_speakers(request, traits);
  return warnings;
}

EngineConfig config_for_one(EngineConfig config, const SpeechRequest& request) {
  config.max_batch_size = config.max_streams = config.max_queue = 1;
  config.min_wait_ms = config.max_wait_ms = 0;
  config.request_timeout_s = 0;
  config.warm_up = false;
  config.warm_voices = "none";
  runtime::family_of(config.model).prepare_for_one(config, request);
  return config;
}

std::string resolve_device(const std::string& device) { return ops::setting_of(ops::choose_device(device)); }

ModelReport inspect_model(const std::string& model, Precision precision) {
  return runtime::family_of(model).inspect(model, precision);
}

MemoryEstimate estimate_memory(const EngineConfig& config) {
  const Device device = ops::choose_device(config.device);
  return runtime::family_of(config.model).estimate_memory(config, device, runtime::memory_available(device));
}

QuantisationReport quantise_model(const QuantiseOptions& options, const QuantiseProgress& progress) {
  const bool keeps_weights = options.weights == WeightFormat::automatic;
  if (keeps_weights && options.codec == CodecWeights::automatic)
    fail(ErrorCode::invalid_argument, "weights: expected int8, int4 or fp8, or int8 of the codec, got \"",
         name_of(options.weights), "\"");
  if (keeps_weights && !options.calibration.empty())
    fail(ErrorCode::invalid_argument, "calibration: it is for int8 and int4 weights of the language model");
  if (keeps_weights && options.group != 0)
    fail(ErrorCode::invalid_argument, "group: it is for int4 weights of the language model");
  if (options.group != 0 && options.weights != WeightFormat::int4)
    fail(ErrorCode::invalid_argument, "group: ", name_of(options.weights),
         " has one scale for each output; groups are for int4");
  if (options.group != 0 && !is_group_of_u4(options.group))
    fail(ErrorCode::invalid_argument, "group: expected 32, 64 or 128, got ", options.group);
  if (options.weights == WeightFormat::fp8 && !options.calibration.empty())
    fail(ErrorCode::unsupported, "calibration: is for int8 and int4; fp8 takes the nearest values");
  return runtime::family_of(options.model).quantise(options, progress);
}

std::unique_ptr<ForcedLogits> open_forced_logits(const EngineConfig& config) {
  config.validate();
  return runtime::family_of(config.model).forced_logits(config);
}

int64_t MemoryEstimate::total_bytes() const {
  int64_t total = 0;
  for (const MemoryPart& part : parts) total += part.bytes;
  return total;
}

void MemoryEstimate::check() const { runtime::check_fits(parts, available_bytes); }

}  // namespace shoal
