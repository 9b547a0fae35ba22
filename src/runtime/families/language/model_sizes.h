// What a model takes of its device's memory, from its configuration alone: models without memory are bound as
// they would be loaded, and asked.
#pragma once

#include <cstdint>

#include "models/dac/codec.h"
#include "models/dac/config.h"
#include "models/dual_ar/config.h"
#include "models/dual_ar/dual_ar.h"
#include "runtime/families/language/speech_model.h"
#include "tensor/formats.h"
#include "tensor/tensor.h"

namespace shoal::runtime {

struct ModelSizes {
  dual_ar::Config language_model;
  dac::Config codec;
  Formats formats;               // of the language model; the codec is in the operands' dtype
  bool codec_in_8_bits = false;  // beside it
  Device device;
  bool semantic_head = false;  // the head has the semantic rows and <|im_end|>'s only
  bool with_encoder = true;

  MatrixFormat codec_format() const;
  // Without memory. Throws Error as loading does: invalid_argument, unsupported.
  dual_ar::DualAr sized_language_model() const;
  dac::Codec sized_codec() const;
};

// Of a model that has been loaded.
ModelSizes sizes_of(const SpeechModel& model, Device device);

}  // namespace shoal::runtime
