#include "runtime/families/language/model_sizes.h"

namespace shoal::runtime {

dual_ar::DualAr ModelSizes::sized_language_model() const {
  return dual_ar::DualAr::sized(
      language_model, device,
      {.formats = formats,
       .head_rows = semantic_head ? dual_ar::HeadRows::semantic : dual_ar::HeadRows::all});
}

MatrixFormat ModelSizes::codec_format() const {
  return codec_in_8_bits ? MatrixFormat(DType::i8, formats.operands) : formats.operands;
}

dac::Codec ModelSizes::sized_codec() const {
  return dac::Codec::sized(codec, device, codec_format(),
                           with_encoder ? dac::Parts::both : dac::Parts::decode);
}

ModelSizes sizes_of(const SpeechModel& model, Device device) {
  return {
      .language_model = model.language_model().config(),
      .codec = model.codec().config(),
      .formats = model.formats(),
      .codec_in_8_bits = model.codec().format().weights == DType::i8,
      .device = device,
      .semantic_head = model.language_model().head_outputs() != model.language_model().config().vocab_size,
      .with_encoder = model.codec().can_encode()};
}

}  // namespace shoal::runtime
