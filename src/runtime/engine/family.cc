#include "runtime/engine/family.h"

#include <algorithm>

#include "base/error.h"
#include "base/printable.h"

namespace shoal::runtime {

ModelVoices Family::own_voices(const std::string& model) const {
  fail(ErrorCode::unsupported, "model ", printable(model),
       ": has no voices of its own; its voices are reference clips");
}

QuantisationReport Family::quantise(const QuantiseOptions& options, const QuantiseProgress&) const {
  fail(ErrorCode::unsupported, "quantise: ", printable(options.model),
       " is no language model; weights of 8 and 4 bits are for these alone");
}

std::unique_ptr<ForcedLogits> Family::forced_logits(const EngineConfig& config) const {
  fail(ErrorCode::unsupported, "model ", printable(config.model),
       ": is no language model; others write no codes whose logits could be compared");
}

std::string Family::shipped_voices_dir(const std::string& /*model*/) const { return ""; }

const Family& family_of(const std::string& model) {
  const auto all = families();
  const auto found =
      std::ranges::find_if(all, [&](const Family* family) { return family->recognises(model); });
  return found == all.end() ? *all.front() : **found;
}

}  // namespace shoal::runtime
