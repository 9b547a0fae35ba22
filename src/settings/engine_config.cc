#include "shoal/engine_config.h"

#include "base/error.h"
#include "settings/table.h"

namespace shoal {
namespace {

void check_device(const std::string& device) {
  if (device == "mps") fail(ErrorCode::unsupported, "device: Apple GPUs are not supported; use cpu");
  const bool known = device == "auto" || device == "cpu" || device == "cuda" ||
                     (device.starts_with("cuda:") && device.size() > 5 && device.size() < 9 &&
                      device.find_first_not_of("0123456789", 5) == std::string::npos);
  if (!known)
    fail(ErrorCode::invalid_argument, "device: expected auto, cpu, cuda or cuda:N, got \"", device, "\"");
}

}  // namespace

std::string_view name_of(Precision precision) {
  switch (precision) {
    case Precision::automatic:
      return "auto";
    case Precision::float32:
      return "float32";
    case Precision::bfloat16:
      return "bfloat16";
    case Precision::float16:
      return "float16";
  }
  return "auto";
}

Precision parse_precision(std::string_view name) {
  for (const Precision precision :
       {Precision::automatic, Precision::float32, Precision::bfloat16, Precision::float16})
    if (name == name_of(precision)) return precision;
  fail(ErrorCode::invalid_argument, "precision: expected auto, float32, bfloat16 or float16, got \"", name,
       "\"");
}

std::string_view name_of(WeightFormat format) {
  switch (format) {
    case WeightFormat::automatic:
      return "auto";
    case WeightFormat::int8:
      return "int8";
    case WeightFormat::int4:
      return "int4";
    case WeightFormat::fp8:
      return "fp8";
  }
  return "auto";
}

WeightFormat parse_weight_format(std::string_view name) {
  for (const WeightFormat format :
       {WeightFormat::automatic, WeightFormat::int8, WeightFormat::int4, WeightFormat::fp8})
    if (name == name_of(format)) return format;
  fail(ErrorCode::invalid_argument, "weights: expected auto, int8, int4 or fp8, got \"", name, "\"");
}

std::string_view name_of(KvPrecision precision) {
  switch (precision) {
    case KvPrecision::automatic:
      return "auto";
    case KvPrecision::model:
      return "model";
    case KvPrecision::int8:
      return "int8";
  }
  return "auto";
}

KvPrecision parse_kv_precision(std::string_view name) {
  for (const KvPrecision precision : {KvPrecision::automatic, KvPrecision::model, KvPrecision::int8})
    if (name == name_of(precision)) return precision;
  if (name == "fp8")
    fail(ErrorCode::unsupported,
         "kv_precision: there is no fp8; int8 takes as little memory and is more exact");
  fail(ErrorCode::invalid_argument, "kv_precision: expected auto, model or int8, got \"", name, "\"");
}

std::string_view name_of(CodecWeights weights) { return weights == CodecWeights::int8 ? "int8" : "auto"; }

CodecWeights parse_codec_weights(std::string_view name) {
  for (const CodecWeights weights : {CodecWeights::automatic, CodecWeights::int8})
    if (name == name_of(weights)) return weights;
  if (name == "int4" || name == "fp8")
    fail(ErrorCode::unsupported, "codec_weights: there is no ", name, "; use int8");
  fail(ErrorCode::invalid_argument, "codec_weights: expected auto or int8, got \"", name, "\"");
}

void EngineConfig::validate() const {
  check_device(device);
  // An automatically chosen device checks this itself once it is known.
  if (device == "cpu" && precision == Precision::float16)
    fail(ErrorCode::unsupported, "precision: float16 needs a GPU; on a CPU use bfloat16 or float32");
  settings::check_ranges(*this);
  if (max_streams != 0 && max_streams < max_batch_size)
    fail(ErrorCode::invalid_argument, "max_streams: expected 0 or at least max_batch_size (", max_batch_size,
         "), got ", max_streams);
  if (threads != 0 && codec_threads > threads)
    fail(ErrorCode::invalid_argument, "codec_threads: expected at most threads (", threads, "), got ",
         codec_threads);
  if (min_wait_ms > max_wait_ms)
    fail(ErrorCode::invalid_argument, "min_wait_ms: expected at most max_wait_ms (", max_wait_ms, "), got ",
         min_wait_ms);
  if (references_dir.empty())
    fail(ErrorCode::invalid_argument, "references_dir: expected a folder, got nothing");
  if (warm_voices.empty())
    fail(ErrorCode::invalid_argument,
         "warm_voices: expected none, all or names with commas between, got nothing");
  if (!with_encoder && warm_voices != "none")
    fail(ErrorCode::invalid_argument,
         "warm_voices: voices need the codec's encoder, but with_encoder is false");
}

}  // namespace shoal
