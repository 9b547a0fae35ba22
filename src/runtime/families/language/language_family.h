// Language models with a codec: the built-in voice, S1, S2 (models/dual_ar, models/dac).
#pragma once

#include <string_view>

#include "runtime/engine/family.h"

namespace shoal::runtime {

// Of "s1", "s2"; empty: not known.
ModelTraits traits_of_family(std::string_view family);

class LanguageFamily final : public Family {
 public:
  bool recognises(const std::string& model) const override;
  ModelTraits traits(const std::string& model) const override;
  std::vector<std::string> validate(const SpeechRequest& request) const override;
  void prepare_for_one(EngineConfig& config, const SpeechRequest& request) const override;
  ModelReport inspect(const std::string& model, Precision precision) const override;
  MemoryEstimate estimate_memory(const EngineConfig& config, Device device, int64_t available) const override;
  QuantisationReport quantise(const QuantiseOptions& options,
                              const QuantiseProgress& progress) const override;
  std::unique_ptr<ForcedLogits> forced_logits(const EngineConfig& config) const override;
  std::string shipped_voices_dir(const std::string& model) const override;
  std::shared_ptr<SpeechPipeline> load(const EngineConfig& config) const override;
};

}  // namespace shoal::runtime
