// What a configuration takes of its device's memory, all of it, before anything is taken.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/engine/device_memory.h"
#include "runtime/families/language/model_sizes.h"
#include "shoal/engine_config.h"
#include "shoal/statistics.h"

namespace shoal::runtime {

struct ThreadSplit;  // pipeline.h

struct MemoryPlan {
  dual_ar::DualAr::Bytes language_model;
  dac::CodecMemory codec;
  int64_t codec_streams = 0;     // their states, and what passes are written to
  int64_t step_arrays = 0;       // inputs and results of the language model's steps
  int64_t decode_workspace = 0;  // of these steps
  int64_t codec_workspace = 0;
  int64_t clip_states = 0, clip_workspace = 0;  // of ClipDecoder and ClipEncoder
  int64_t recordings = 0;                       // of steps that are replayed
  int64_t kv_pages = 0, kv_page_bytes = 0;
  int64_t available = 0;  // what all of it is taken from

  int64_t total() const;
  // By name, in the order in which they are taken; nothing that takes no memory.
  std::vector<MemoryPart> parts() const;
  void check() const { check_fits(parts(), available); }
};

// available: bytes that are free before the model is loaded. The KV pages are what plan_kv_pages
// (pipeline.h) makes of what the rest leaves; throws Error as that does. `threads` matter to a CPU only,
// which cuts its work to their caches.
MemoryPlan plan_memory(const EngineConfig& config, const ModelSizes& sizes, const ThreadSplit& threads,
                       int64_t available);

}  // namespace shoal::runtime
