// Models of random weights at published sizes, measured without an engine. The only file of bench/ that knows
// them all is random_models.cc.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "bench/machine.h"
#include "bench/speech/compute_session.h"
#include "shoal/engine_config.h"

namespace shoal::bench {

struct RandomBenchOptions {
  Precision precision = Precision::automatic;
  WeightFormat weights = WeightFormat::automatic;
  KvPrecision kv_precision = KvPrecision::automatic;
  CodecWeights codec_weights = CodecWeights::automatic;
  bool semantic_only = false;  // as EngineConfig::semantic_only
  std::vector<int> batches;    // sequences per step or call; empty: the device's default list
  int context = 0;             // positions before a decode step, up to whole pages; 0: the device's default
  bool with_load = true;       // measure loading a checkpoint, too, where can_load
  std::function<void(const std::string& part)> on_part;  // before each part, with its name
  // Figures as they come: a key for JSON, their JSON, and what prints them to standard output.
  std::function<void(const char* key, nlohmann::ordered_json json, const std::function<void()>& print)>
      on_figures;
};

struct RandomBench {
  std::string name;       // "s1-mini": the model "random:NAME" without its prefix
  bool can_load = false;  // has a checkpoint to write and load (RandomBenchOptions::with_load)
  void (*run)(const MachineLimits& limits, const RandomBenchOptions& options, ComputeSession& session);
};

std::span<const RandomBench> random_benches();
std::vector<std::string> names_of_random_benches();
std::string list_of_random_benches();  // "s1-mini, kokoro"
// Throws Error(invalid_argument) for an unknown name.
const RandomBench& random_bench(const std::string& name);

// Throws Error(unsupported) for a precision that the session's device does not compute in.
void check_precision(Precision precision, const ComputeSession& session);

}  // namespace shoal::bench
