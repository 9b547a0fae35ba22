// The files of a model folder in its official layout (README, "A model folder").
#pragma once

#include <string>

namespace shoal::weights {

// Paths, each starting with `dir`.
struct ModelFiles {
  std::string dir;
  std::string config;          // config.json
  std::string weights;         // the first of model.safetensors.index.json, model.safetensors, model.pth
  std::string codec;           // the first of codec.safetensors, codec.pth
  std::string codec_config;    // codec_config.json; empty when absent: the published values
  std::string tokenizer;       // the first of tokenizer.tiktoken, tokenizer.json
  std::string special_tokens;  // special_tokens.json; empty when absent
};

// Throws Error(not_found) with one sentence that says what is missing and what to do.
ModelFiles find_model_files(const std::string& dir);

}  // namespace shoal::weights
