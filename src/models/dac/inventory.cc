#include "models/dac/inventory.h"

#include <string>
#include <string_view>

#include "models/dac/decoder.h"
#include "models/dac/encoder.h"
#include "ops/planning_context.h"
#include "weights/source.h"

namespace shoal::dac {
namespace {

std::string part_of(std::string_view name) {
  if (name.starts_with("encoder.")) return "codec encoder";
  return name.starts_with("decoder.") ? "codec decoder" : "codec quantiser";
}

}  // namespace

std::vector<RequiredTensor> required_tensors(const Config& config, Parts parts) {
  weights::NamesOnly names(part_of);
  ops::PlanningContext planning;
  if (parts != Parts::encode) Decoder(names, planning.context(), config, DType::bf16);
  if (parts != Parts::decode) Encoder(names, planning.context(), config, DType::bf16);
  return names.take();
}

}  // namespace shoal::dac
