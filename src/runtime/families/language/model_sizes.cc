#include "runtime/families/language/model_sizes.h"

#include "ops/attention_scratch.h"

namespace shoal::runtime {

dual_ar::DualAr ModelSizes::sized_language_model() const {
  return dual_ar::DualAr::sized(
      language_model, device,
      {.formats = formats,
       .head_rows = semantic_head ? dual_ar::HeadRows::semantic : dual_ar::HeadRows::all});
}

dac::Codec ModelSizes::sized_codec() const {
  return dac::Codec::sized(codec, device, formats.operands,
                           with_encoder ? dac::Parts::both : dac::Parts::decode);
}

int64_t ModelSizes::parked_bytes(int64_t rows) const {
  const dual_ar::BlockConfig& slow = language_model.slow;
  return ops::parked_bytes(device, {slow.heads, slow.kv_heads, slow.head_dim}, formats.kv, rows,
                           language_model.max_positions);
}

ModelSizes sizes_of(const SpeechModel& model, Device device) {
  return {
      .language_model = model.language_model().config(),
      .codec = model.codec().config(),
      .formats = model.formats(),
      .device = device,
      .semantic_head = model.language_model().head_outputs() != model.language_model().config().vocab_size,
      .with_encoder = model.codec().can_encode()};
}

}  // namespace shoal::runtime
