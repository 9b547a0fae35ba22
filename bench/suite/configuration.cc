#include "bench/suite/configuration.h"

#include <algorithm>
#include <functional>

#include "base/error.h"

namespace shoal::suite {
namespace {

constexpr int64_t kKvMemory_mb = 512;  // 4,096 tokens of S1-mini in 16 bits, and some more

struct Form {
  const char *key, *title;
  Precision precision;
  WeightFormat weights = WeightFormat::automatic;
  KvPrecision kv = KvPrecision::automatic;
};

constexpr Form kForms[] = {
    {"bf16", "BF16", Precision::bfloat16},
    {"f16", "F16", Precision::float16},
    {"f32", "F32", Precision::float32},
    {"int8", "INT8 weights", Precision::bfloat16, WeightFormat::int8},
    {"int4", "INT4 weights", Precision::bfloat16, WeightFormat::int4},
    {"int8-kv", "INT8 KV", Precision::bfloat16, WeightFormat::automatic, KvPrecision::int8},
};

Configuration configuration_of(EngineConfig config, const std::string& key) {
  const auto form = std::ranges::find_if(kForms, [&](const Form& each) { return key == each.key; });
  if (form == std::end(kForms))
    fail(ErrorCode::invalid_argument,
         "configurations: expected bf16, f16, f32, int8, int4 or int8-kv, got \"", key, "\"");
  config.precision = form->precision;
  config.weights = form->weights;
  config.kv_precision = form->kv;
  config.max_batch_size = 1;
  config.prefix_cache = false;
  if (config.kv_memory_mb == 0)
    config.kv_memory_mb = form->kv == KvPrecision::int8 ? kKvMemory_mb / 2 : kKvMemory_mb;
  return {.key = key, .title = form->title, .config = std::move(config)};
}

}  // namespace

std::span<const std::string> keys_of_configurations() {
  static const std::vector<std::string> keys = [] {
    std::vector<std::string> all;
    for (const Form& form : kForms) all.emplace_back(form.key);
    return all;
  }();
  return keys;
}

std::vector<Configuration> configurations_of(const EngineConfig& base, std::span<const std::string> keys) {
  std::vector<Configuration> all;
  for (const std::string& key : keys) all.push_back(configuration_of(base, key));
  return all;
}

}  // namespace shoal::suite
