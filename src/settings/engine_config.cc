#include "shoal/engine_config.h"

#include "base/error.h"

namespace shoal {
namespace {

template <typename T>
void check_range(const char* name, T value, T low, T high) {
  if (!(value >= low && value <= high))
    fail(ErrorCode::invalid_argument, name, ": expected ", low, " to ", high, ", got ", value);
}

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
  }
  return "auto";
}

Precision parse_precision(std::string_view name) {
  for (const Precision precision : {Precision::automatic, Precision::float32, Precision::bfloat16})
    if (name == name_of(precision)) return precision;
  if (name == "float16")
    fail(ErrorCode::unsupported, "precision: float16 needs a GPU; on a CPU use bfloat16 or float32");
  fail(ErrorCode::invalid_argument, "precision: expected auto, float32 or bfloat16, got \"", name, "\"");
}

void EngineConfig::validate() const {
  check_device(device);
  check_range("threads", threads, 0, 1024);
  check_range("codec_threads", codec_threads, -1, 1024);
  check_range("max_batch_size", max_batch_size, 1, 1024);
  check_range("max_streams", max_streams, 0, 4096);
  if (max_streams != 0 && max_streams < max_batch_size)
    fail(ErrorCode::invalid_argument, "max_streams: expected 0 or at least max_batch_size (", max_batch_size,
         "), got ", max_streams);
  check_range("max_queue", max_queue, 1, 1 << 20);
  check_range("batch_timeout_ms", batch_timeout_ms, 0, 60'000);
  check_range("prefill_columns", prefill_columns, 1, 1 << 16);
  check_range<int64_t>("kv_memory_mb", kv_memory_mb, 0, int64_t{1} << 24);
  check_range("kv_memory_fraction", kv_memory_fraction, 0.01, 0.95);
  check_range("kv_page_size", kv_page_size, 1, 1024);
  check_range("kv_cache_size", kv_cache_size, 1, 1 << 20);
  check_range("reference_cache_size", reference_cache_size, 1, 1 << 24);
  check_range("request_timeout_s", request_timeout_s, 0, 24 * 3600);
  check_range("prefetch_s", prefetch_s, 1.0, 3600.0);
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
