// What several subcommands take from the settings.
#pragma once

#include <string>

#include "cli/engine_settings.h"

namespace CLI {
class App;
}

namespace shoal::cli {

// Where and how to compute: --device, --threads, --cuda-graphs, --semantic-only.
class ComputeOptions {
 public:
  void add_to(CLI::App& command) {
    settings_.add_to(command, {"device", "weights", "kv_precision", "codec_weights", "threads", "cuda_graphs",
                               "semantic_only"});
  }
  // The settings including these options. Throws the Errors of resolve_settings.
  EngineConfig config() const { return settings_.resolve().config; }

 private:
  EngineSettings settings_;
};

// Settings of commands that have their own options for them: the option's value, or, if it is empty, the
// environment's or the file's. Throw the Errors of resolve_settings.
std::string chosen_precision(const std::string& option);  // "auto", "float32", "bfloat16", "float16"
std::string chosen_model(const std::string& option);      // empty: the built-in voice

}  // namespace shoal::cli
