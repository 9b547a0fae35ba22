// Kokoro: phonemes and a style to sound (models/kokoro).
#pragma once

#include "runtime/engine/family.h"

namespace shoal::runtime {

class KokoroFamily final : public Family {
 public:
  bool recognises(const std::string& model) const override;
  ModelTraits traits(const std::string& model) const override;
  std::vector<std::string> validate(const SpeechRequest& request) const override;
  void prepare_for_one(EngineConfig& config, const SpeechRequest& request) const override;
  ModelReport inspect(const std::string& model, Precision precision) const override;
  MemoryEstimate estimate_memory(const EngineConfig& config, Device device, int64_t available) const override;
  ModelVoices own_voices(const std::string& model) const override;
  std::shared_ptr<SpeechPipeline> load(const EngineConfig& config) const override;
};

}  // namespace shoal::runtime
