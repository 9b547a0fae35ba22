#include "runtime/engine/model_precision.h"

#include "base/error.h"
#include "ops/attention.h"
#include "ops/device_state.h"

namespace shoal::runtime {
namespace {

DType dtype_of(WeightFormat weights, DType automatic) {
  switch (weights) {
    case WeightFormat::automatic:
      break;
    case WeightFormat::int8:
      return DType::i8;
    case WeightFormat::int4:
      return DType::u4;
    case WeightFormat::fp8:
      return DType::f8;
  }
  return automatic;
}

}  // namespace

void check_precision(Precision precision, Device device) {
  if (precision == Precision::float16 && !ops::multiplies(device, DType::f16))
    fail(ErrorCode::unsupported, "precision: float16 needs a GPU; on a CPU use bfloat16 or float32");
}

Formats with_weights(Formats formats, WeightFormat weights, Device device) {
  const bool is_stored = is_quantised(formats.weights);
  const DType wanted = dtype_of(weights, formats.weights);
  if (is_stored && wanted != formats.weights)
    fail(ErrorCode::unsupported, "weights: the model keeps its layers in ", name_of_weights(formats.weights),
         ", which cannot become ", name_of(weights), "; use auto, or the model that it was made of");
  if (wanted == DType::u4 && formats.weights != wanted) formats.group = kUsualGroup;
  formats.weights = wanted;
  if (!is_quantised(wanted) || ops::multiplies(device, ops::layer_format(device, formats))) return formats;
  if (wanted == DType::f8 && !ops::computes_by_itself(device))
    fail(ErrorCode::unsupported, "weights: fp8 needs a GPU; on a CPU use int8 or int4",
         is_stored ? ", with the model that this one was made of" : "");
  fail(ErrorCode::unsupported, "weights: ", name_of_weights(wanted),
       " on a GPU needs 16 bits beside it; use --precision bfloat16");
}

std::string_view name_of_weights(DType dtype) {
  return dtype == DType::u4 ? "int4" : dtype == DType::f8 ? "fp8" : "int8";
}

void check_kv_precision(KvPrecision kv, Device device, int64_t head_dim) {
  if (kv == KvPrecision::int8 && !ops::can_attend(device, head_dim, DType::i8))
    fail(ErrorCode::unsupported,
         "kv_precision: int8 on a GPU needs heads of 32, 64 or 128 values, this model's have ", head_dim,
         "; use auto");
}

Formats with_kv_precision(Formats formats, KvPrecision kv) {
  if (kv == KvPrecision::int8) formats.kv = DType::i8;
  return formats;
}

MatrixFormat codec_format(DType operands, CodecWeights weights, bool stored, Device device) {
  const MatrixFormat narrow{DType::i8, operands};
  const bool is_gpu = ops::computes_by_itself(device), fits = is_gpu && ops::multiplies(device, narrow);
  if (weights == CodecWeights::int8 && !fits)
    fail(ErrorCode::unsupported, "codec_weights: int8 ",
         is_gpu ? "on a GPU needs 16 bits beside it; use --precision bfloat16"
                : "saves memory on a GPU alone; on a CPU use auto");
  return fits && (stored || weights == CodecWeights::int8) ? narrow : MatrixFormat(operands);
}

Precision precision_of(const Formats& formats) {
  switch (formats.operands) {
    case DType::bf16:
      return Precision::bfloat16;
    case DType::f16:
      return Precision::float16;
    default:
      return Precision::float32;
  }
}

FormatNames names_of(Precision precision) {
  const std::string name(name_of(precision));
  return {.precision = name, .weights = name, .kv_precision = {}, .codec_weights = {}};
}

FormatNames names_of(const Formats& formats, const MatrixFormat& codec) {
  const std::string_view precision = name_of(precision_of(formats));
  const auto kept = [&](DType weights) {
    return is_quantised(weights) ? name_of_weights(weights) : precision;
  };
  return {.precision = std::string(precision),
          .weights = std::string(kept(formats.weights)),
          .kv_precision = std::string(formats.kv == DType::i8 ? name_of(KvPrecision::int8) : precision),
          .codec_weights = std::string(kept(codec.weights))};
}

DType automatic_dtype(const AutomaticFacts& facts) {
  if (facts.stored_in_16_bits) return DType::bf16;
  return facts.bf16_is_free && facts.has_bf16 ? DType::bf16 : DType::f32;
}

bool is_stored_in_16_bits(const weights::Checkpoint& checkpoint) {
  int64_t narrow = 0, total = 0;
  for (const weights::StoredTensor& tensor : checkpoint.tensors()) {
    total += tensor.view.elements();
    if (size_of(tensor.view.dtype()) == 2) narrow += tensor.view.elements();
  }
  return narrow * 2 > total;
}

Formats choose_formats(Precision precision, const weights::Checkpoint& checkpoint,
                       const std::optional<weights::Quantisation>& stored) {
  if (stored) {
    Formats formats = precision == Precision::automatic ? Formats(stored->precision)
                                                        : choose_formats(precision, checkpoint);
    if (stored->weights) formats.weights = *stored->weights;
    formats.group = stored->group;
    return formats;
  }
  switch (precision) {
    case Precision::float32:
      return DType::f32;
    case Precision::bfloat16:
      return DType::bf16;
    case Precision::float16:
      return DType::f16;
    case Precision::automatic:
      break;
  }
  // A language model in fewer bits chooses other codes.
  return automatic_dtype({.stored_in_16_bits = is_stored_in_16_bits(checkpoint)});
}

DType choose_dtype(Precision precision, Device device, const weights::Checkpoint* checkpoint) {
  if (precision != Precision::automatic) return formats_of_random_weights(precision).operands;
  return automatic_dtype({.stored_in_16_bits = checkpoint && is_stored_in_16_bits(*checkpoint),
                          .bf16_is_free = true,
                          .has_bf16 = ops::has_products_of(device, DType::bf16)});
}

Formats formats_of_random_weights(Precision precision) {
  switch (precision) {
    case Precision::float32:
      return DType::f32;
    case Precision::float16:
      return DType::f16;
    case Precision::automatic:
    case Precision::bfloat16:
      break;
  }
  return DType::bf16;
}

}  // namespace shoal::runtime
