// The interface of a model family to the engine and to tools, before one of its models is loaded.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/engine/speech_pipeline.h"
#include "shoal/forced_logits.h"
#include "shoal/model.h"
#include "shoal/quantise.h"
#include "shoal/stored_voices.h"
#include "tensor/tensor.h"

namespace shoal::runtime {

// Stateless: one object serves every model. `model` is EngineConfig::model. Each family has its own folder
// under runtime/families/; only families.cc knows all of them.
class Family {
 public:
  Family() = default;
  virtual ~Family() = default;
  Family(const Family&) = delete;
  Family& operator=(const Family&) = delete;

  // By the model's name or its config.json. Throws nothing: an unreadable folder belongs to no family.
  virtual bool recognises(const std::string& model) const = 0;
  // As shoal::traits_of().
  virtual ModelTraits traits(const std::string& model) const = 0;
  // As shoal::validate_request().
  virtual std::vector<std::string> validate(const SpeechRequest& request) const = 0;
  // The changes that config_for_one() makes for this family only.
  virtual void prepare_for_one(EngineConfig& config, const SpeechRequest& request) const = 0;
  // As shoal::inspect_model().
  virtual ModelReport inspect(const std::string& model, Precision precision) const = 0;
  // As shoal::estimate_memory(). `device` is config.device; available: bytes that are free on it.
  virtual MemoryEstimate estimate_memory(const EngineConfig& config, Device device,
                                         int64_t available) const = 0;
  // As shoal::quantise_model(); here: throws Error(unsupported).
  virtual QuantisationReport quantise(const QuantiseOptions& options, const QuantiseProgress& progress) const;
  // As shoal::open_forced_logits(); here: throws Error(unsupported).
  virtual std::unique_ptr<ForcedLogits> forced_logits(const EngineConfig& config) const;
  // As shoal::model_voices(); here: throws Error(unsupported).
  virtual ModelVoices own_voices(const std::string& model) const;
  // The folder of the reference clips that came with the model, which need not exist; here: empty.
  virtual std::string shipped_voices_dir(const std::string& model) const;
  // Loads the model and makes it ready to speak. Throws Error as loading does.
  virtual std::shared_ptr<SpeechPipeline> load(const EngineConfig& config) const = 0;
};

// In the order in which they are asked (families/families.cc).
std::span<const Family* const> families();

// The family that recognises the model. If none does, the first one: its errors say what a folder needs.
const Family& family_of(const std::string& model);

}  // namespace shoal::runtime
