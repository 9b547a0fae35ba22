// How many of a GPU's multiprocessors the codec has to itself while many sequences speak
// (schedule/device_share.h, ops/stream.h).
#pragma once

#include "runtime/families/language/pipeline.h"
#include "shoal/engine_config.h"

namespace shoal::runtime {

// Whether the engine may divide a GPU between decoding and the codec.
bool may_divide(const EngineConfig& config, const ThreadSplit& split);

// Whether dividing is worth it for a language model that reads so many bytes for a frame of one sequence
// (DualAr::bytes_per_frame). Who asks for a part by number has it with any.
bool is_worth_dividing(const EngineConfig& config, int64_t bytes_per_frame);

// Multiprocessors of the codec's part of a GPU that has `all` (0: a CPU); 0: it is not divided.
// Throws Error(invalid_argument): codec_multiprocessors leaves none to decode on, or never took effect.
int codec_part(const EngineConfig& config, const ThreadSplit& split, int all);

}  // namespace shoal::runtime
