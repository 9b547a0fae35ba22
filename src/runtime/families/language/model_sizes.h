// What a model takes of its device's memory, from its configuration alone: by the shapes of its weights and
// of what it computes. Packed weights may be padded; that is left out.
#pragma once

#include <cstdint>

#include "models/dac/codec.h"
#include "models/dac/config.h"
#include "models/dual_ar/config.h"
#include "models/dual_ar/dual_ar.h"
#include "runtime/engine/device_memory.h"
#include "runtime/families/language/speech_model.h"
#include "tensor/tensor.h"

namespace shoal::runtime {

struct ModelSizes {
  dual_ar::Config language_model;
  dac::Config codec;
  DType dtype = DType::f32;
  Device device;
  bool semantic_head = false;  // the head has the semantic rows and <|im_end|>'s only
  bool with_encoder = true;

  // Of weights.
  dual_ar::DualAr::Bytes language_model_bytes() const;
  dac::CodecMemory codec_bytes() const;

  // The state of one decoding stream (CodecStatePool::bytes_per_stream).
  int64_t codec_stream_bytes() const;
  // What the passes of that many streams are written to (the rest of CodecStatePool::bytes).
  int64_t codec_pass_bytes(int64_t streams) const;
  // On the device, for steps of at most `rows` sequences (dual_ar::StepMemory).
  int64_t step_bytes(int64_t rows, int64_t pages_per_sequence) const;

  // Intermediate tensors at their peak: those of the models, and copies of what products read, in the dtype
  // that they multiply. scratch_bytes come on top.
  int64_t decode_workspace_bytes(int64_t rows) const;
  int64_t prefill_workspace_bytes(int64_t columns) const;
  int64_t codec_workspace_bytes(int threads) const;
  int64_t encoder_workspace_bytes(int clips, int threads) const;  // with the clips' state

  // What attention of few sequences parks between the blocks of a row at most
  // (ops/cuda/attention/attention_decode.cu): a step may need it beside half of the scratch.
  int64_t parked_bytes(int64_t rows) const;
  int64_t scratch_bytes(int threads) const { return op_scratch_bytes(device, threads); }

  // Launches of a recorded decode step.
  int64_t launches_of_step() const;

  int64_t head_rows() const;
  // Of one value that a product reads, once it has been rounded.
  int64_t input_bytes() const;
};

// Of a model that has been loaded.
ModelSizes sizes_of(const SpeechModel& model, Device device);

}  // namespace shoal::runtime
