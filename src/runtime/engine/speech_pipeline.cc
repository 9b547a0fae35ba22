#include "runtime/engine/speech_pipeline.h"

#include "base/error.h"
#include "ops/device_check.h"
#include "ops/device_state.h"

namespace shoal::runtime {
namespace {

[[noreturn]] void refuse_codes(const std::string& model) {
  fail(ErrorCode::unsupported, "model ", model, ": has no codec; it speaks with voices of its own");
}

}  // namespace

EncodedClip SpeechPipeline::encode(const std::string& /*audio*/) { refuse_codes(model_name()); }
std::vector<float> SpeechPipeline::decode(const std::vector<int32_t>& /*codes*/) {
  refuse_codes(model_name());
}
CodecShape SpeechPipeline::codec_shape() const { refuse_codes(model_name()); }

Phonemized SpeechPipeline::phonemize(const std::string& /*text*/, const std::string& /*language*/,
                                     bool /*normalise*/) {
  fail(ErrorCode::unsupported, "model ", model_name(), ": reads text, not phonemes");
}

std::vector<float> SpeechPipeline::voice_styles(const std::string& /*voice*/) const {
  fail(ErrorCode::unsupported, "model ", model_name(),
       ": has no voices of its own; its voices are reference clips");
}

SelfTest test_device(Device device, const std::string& name, const std::vector<MemoryPart>& memory) {
  SelfTest result{.device = name, .gpu_available = ops::gpu_available(), .gpu_memory_bytes = 0, .error = {}};
  if (ops::free_device_memory(device)) {
    for (const MemoryPart& part : memory) result.gpu_memory_bytes += part.bytes;
  }
  try {
    ops::check_device(device);
  } catch (const std::exception& error) {
    result.error = error.what();
  }
  return result;
}

}  // namespace shoal::runtime
