// An evaluation as JSON: "texts", "logits" (compare_logits), "sampled" and "greedy" (compare_speech, or
// null), "side" and "reference" (side_of). What is shown and judged is read from it.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "shoal/engine_config.h"

namespace shoal::quality {

// A configuration and its memory as planned. Throws as estimate_memory.
nlohmann::ordered_json side_of(const EngineConfig& config);

struct Gates {
  std::optional<double> max_kl;  // of the mean divergence of the semantic head, and of the fast heads
  std::optional<double> max_length_ratio;  // of the longest text of either mode, and of 1 / the shortest
};
// A sentence for each that is missed.
std::vector<std::string> missed_gates(const nlohmann::ordered_json& evaluation, const Gates& gates);

std::string table_of(const nlohmann::ordered_json& evaluation);

}  // namespace shoal::quality
