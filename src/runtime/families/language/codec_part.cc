#include "runtime/families/language/codec_part.h"

#include "base/error.h"
#include "runtime/schedule/device_share.h"

namespace shoal::runtime {
namespace {

// Where an automatic part was measured (docs/perf/notebook-engine.md): an H100 or H200, and its codec's part.
constexpr int kMeasuredDevice = 132, kMeasuredPart = 64;
// S1-mini reads 1.9 GB and gains a fifth; S2-Pro 14.8 GB, and decoding is nearly all that its engine does.
constexpr int64_t kMostBytesOfFrame = int64_t{4} << 30;

}  // namespace

bool may_divide(const EngineConfig& config, const ThreadSplit& split) {
  return config.codec_multiprocessors != 0 && config.max_batch_size >= kLeastToDivide && split.codec > 0;
}

bool is_worth_dividing(const EngineConfig& config, int64_t bytes_per_frame) {
  return config.codec_multiprocessors > 0 || bytes_per_frame <= kMostBytesOfFrame;
}

int codec_part(const EngineConfig& config, const ThreadSplit& split, int all) {
  if (config.codec_multiprocessors > 0 && all == 0)
    fail(ErrorCode::invalid_argument,
         "codec_multiprocessors: divides a GPU, and this engine computes on the CPU; leave it out");
  if (config.codec_multiprocessors > 0 && config.codec_multiprocessors >= all)
    fail(ErrorCode::invalid_argument, "codec_multiprocessors: expected fewer than the device has (", all,
         "), got ", config.codec_multiprocessors);
  if (config.codec_multiprocessors > 0 && !may_divide(config, split))
    fail(ErrorCode::invalid_argument, "codec_multiprocessors: needs a max_batch_size of at least ",
         kLeastToDivide, " and a thread of the codec's own (codec_threads), got ", config.max_batch_size,
         " and ", split.codec);
  if (!may_divide(config, split)) return 0;
  if (config.codec_multiprocessors > 0) return config.codec_multiprocessors;
  return all == kMeasuredDevice ? kMeasuredPart : 0;
}

}  // namespace shoal::runtime
