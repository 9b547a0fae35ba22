// What a suite compares: one model in several forms.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "shoal/engine_config.h"

namespace shoal::suite {

struct Configuration {
  std::string key;    // "int8-kv", as the command line has it
  std::string title;  // "INT8 KV"
  EngineConfig config;
};

// "bf16", "f16", "f32", "int8", "int4", "int8-kv": those that exist, in the order in which they run.
std::span<const std::string> keys_of_configurations();

// `base` in the forms of these keys. One sequence at a time; prompts are computed anew each time (the texts
// repeat); unless `base` says how much, 512 MiB hold keys and values, 256 where they have 8 bits. Throws
// Error(invalid_argument): no such key.
std::vector<Configuration> configurations_of(const EngineConfig& base, std::span<const std::string> keys);

}  // namespace shoal::suite
