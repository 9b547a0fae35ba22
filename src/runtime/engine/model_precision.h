// The formats that a precision means for a checkpoint.
#pragma once

#include <optional>
#include <string_view>

#include "shoal/engine_config.h"
#include "shoal/statistics.h"
#include "tensor/formats.h"
#include "tensor/tensor.h"
#include "weights/checkpoint.h"
#include "weights/quantised.h"

namespace shoal::runtime {

// Throws Error(unsupported) for a precision that the device does not compute in.
void check_precision(Precision precision, Device device);
// These formats with the layers' weights as asked for; automatic: as they are. Throws Error(unsupported) for
// those that the device does not multiply, and for others than those of 8 or 4 bits that the model keeps.
Formats with_weights(Formats formats, WeightFormat weights, Device device);
// "int8", "int4" or "fp8", of weights in i8, u4 or f8.
std::string_view name_of_weights(DType dtype);
// Throws Error(unsupported) for keys and values that attention on the device does not read.
void check_kv_precision(KvPrecision kv, Device device, int64_t head_dim);
// These formats with keys and values as asked for.
Formats with_kv_precision(Formats formats, KvPrecision kv);
// How a codec whose products take operands of that dtype keeps its weights. stored: the folder has them in 8
// bits, which stay so where the device multiplies them. Throws Error(unsupported) for int8 where it does not.
MatrixFormat codec_format(DType operands, CodecWeights weights, bool stored, Device device);
// The name of the chosen precision.
Precision precision_of(const Formats& formats);
// Of a model that has one precision, no keys and values, and no codec.
FormatNames names_of(Precision precision);
// Of a language model and its codec.
FormatNames names_of(const Formats& formats, const MatrixFormat& codec);
// What "auto" decides by.
struct AutomaticFacts {
  bool stored_in_16_bits = false;  // the larger part of the checkpoint
  bool bf16_is_free = false;       // measured: bfloat16 changes no decision of the family's models
  bool has_bf16 = false;           // the device has instructions for it (ops/device_state.h)
};
// The fastest dtype whose measured cost is nil: of 16 bits what is stored so; else bf16 where it costs
// nothing and the device is made for it (docs/QUANTISATION.md).
DType automatic_dtype(const AutomaticFacts& facts);
// Of a language model. automatic: 16 bits where the larger part of the checkpoint is stored so. stored: what
// a quantised model says of itself: how its layers' weights are kept, and automatic is its precision.
Formats choose_formats(Precision precision, const weights::Checkpoint& checkpoint,
                       const std::optional<weights::Quantisation>& stored = std::nullopt);
// Whether the larger part of the checkpoint is stored in 16 bits.
bool is_stored_in_16_bits(const weights::Checkpoint& checkpoint);
// Of the matrices of a model that writes no codes and computes in f32 what its choices depend on: bfloat16
// changes its sound by less than another seed does. checkpoint: none for random weights in f32.
DType choose_dtype(Precision precision, Device device, const weights::Checkpoint* checkpoint);
// Of a language model with random weights, which stand for a 16-bit checkpoint.
Formats formats_of_random_weights(Precision precision);

}  // namespace shoal::runtime
