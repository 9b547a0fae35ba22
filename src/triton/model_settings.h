// What a config.pbtxt says to this backend.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shoal::triton {

struct ModelSettings {
  std::vector<std::pair<std::string, std::string>> settings;  // of the engine: docs/SETTINGS.md
  bool decoupled = false;          // sound as it is made, in several responses; else in one
  bool batched = false;            // tensors have the batch's dimension before their own
  std::vector<std::string> notes;  // for the log
};

// `json`: the configuration as Triton gives it. `folder`: of the model's version, whose model is spoken with
// if it has a config.json, unless a parameter `model` names another. Throws Error(invalid_argument,
// unsupported) with the field.
ModelSettings read_model_settings(std::string_view json, const std::string& folder);

}  // namespace shoal::triton
