// The interface of a loaded model of any family that speaks for many requests.
#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "runtime/engine/ledger.h"
#include "runtime/engine/model_precision.h"
#include "shoal/engine.h"
#include "tensor/tensor.h"

namespace shoal::runtime {

// One loaded model with its threads, memory and queue. Thread-safe.
class SpeechPipeline {
 public:
  SpeechPipeline() = default;
  // Ends the remaining requests with Error(unavailable).
  virtual ~SpeechPipeline() = default;
  SpeechPipeline(const SpeechPipeline&) = delete;
  SpeechPipeline& operator=(const SpeechPipeline&) = delete;

  // As Engine::submit.
  virtual Speech submit(const SpeechRequest& request, QueueEntry entry) = 0;
  Speech submit(const SpeechRequest& request) { return submit(request, {}); }

  // Speaks a sentence. Throws its errors.
  virtual void warm_up() = 0;
  // Starts making ready the voices that the configuration names, in the background. Never throws.
  virtual void warm_voices() = 0;

  // Refuses new requests.
  virtual void close() = 0;
  // As Ledger::wait_until_empty.
  virtual bool wait_until_empty(int64_t until_us) = 0;
  // Ends every request with Error(unavailable).
  virtual void cancel_all() = 0;

  virtual ModelTraits traits() const = 0;
  virtual int sample_rate_hz() const = 0;
  virtual std::string model_name() const = 0;
  virtual FormatNames formats() const = 0;
  virtual const std::string& device() const = 0;  // described for people
  // Bytes of the GPU in use, by whomever, and in all; both 0 on a CPU.
  struct DeviceMemory {
    int64_t used = 0, total = 0;
  };
  virtual DeviceMemory device_memory() const = 0;
  virtual std::vector<MemoryPart> memory() const = 0;
  virtual Statistics statistics() const = 0;
  virtual SelfTest self_test() const = 0;

  // Optional features, as the methods of Engine. The defaults throw Error(unsupported).
  virtual EncodedClip encode(const std::string& audio);
  virtual std::vector<float> decode(const std::vector<int32_t>& codes);
  virtual CodecShape codec_shape() const;
  virtual Phonemized phonemize(const std::string& text, const std::string& language, bool normalise);
  virtual std::vector<float> voice_styles(const std::string& voice) const;
  // Null: the voices in references_dir.
  virtual const Voices* own_voices() const { return nullptr; }
  // The folder of the reference clips that came with the model; empty: there is none.
  virtual std::string shipped_voices_dir() const { return ""; }
};

// The device as self_test() finds it. memory: of the engine.
SelfTest test_device(Device device, const std::string& name, const std::vector<MemoryPart>& memory);

}  // namespace shoal::runtime
