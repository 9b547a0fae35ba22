#include "runtime/families/language/memory_plan.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "ops/device_state.h"
#include "runtime/families/language/pipeline.h"

namespace shoal::runtime {
namespace {

// What the driver keeps for a launch of a recording; an allowance, not measured. Recordings: steps of every
// size of dual_ar::StepMemory, each with and without its column; the codec's passes of a few frames.
constexpr int64_t kBytesOfLaunch = 2048;
constexpr int64_t kCodecRecordings = 32, kLaunchesOfPass = 150;

// Clips that the codec encodes together.
constexpr int kClipsAtATime = 4;

int64_t recordings_bytes(const EngineConfig& config, const ModelSizes& sizes) {
  if (!config.cuda_graphs || !ops::computes_by_itself(sizes.device)) return 0;
  // 1, 2, 4, 8, 16, 24, 32, 48, ...: not two for each doubling.
  const auto of_steps =
      2 * 2 * static_cast<int64_t>(std::bit_width(static_cast<unsigned>(config.max_batch_size)));
  return (of_steps * sizes.launches_of_step() + kCodecRecordings * kLaunchesOfPass) * kBytesOfLaunch;
}

// Of prompts, in a step. A GPU takes few columns hardly faster than many: with 2,048 instead of 256, 256
// users get 4 % more sound a second, and their first sound nearly five times as early (docs/PERF.md).
constexpr int64_t kUsualColumns = 256, kMostColumns = 2048, kColumnsOfSequence = 32;

}  // namespace

int64_t columns_of_a_step(const EngineConfig& config, Device device) {
  if (config.prefill_columns > 0) return config.prefill_columns;
  if (!ops::computes_by_itself(device)) return kUsualColumns;
  return std::clamp(kColumnsOfSequence * config.max_batch_size, kUsualColumns, kMostColumns);
}

std::vector<MemoryPart> MemoryPlan::parts() const {
  std::vector<MemoryPart> parts = {
      {"language model, embeddings", language_model.embeddings},
      {"language model, slow layers", language_model.slow_layers},
      {"language model, head", language_model.head},
      {"language model, fast layers", language_model.fast_layers},
      {"language model, fast head", language_model.fast_head},
      {"language model, rotations", language_model.rope},
      {"codec, encoder", codec.encoder},
      {"codec, quantiser", codec.quantiser},
      {"codec, decoder", codec.decoder},
      {"codec streams", codec_streams},
      {"inputs and results of steps", step_arrays},
      {"workspace of steps", decode_workspace},
      {"workspace of the codec", codec_workspace},
      {"workspace of clips", clip_workspace},
      {"recordings", recordings},
      {"KV pages", kv_pages * kv_page_bytes},
  };
  std::erase_if(parts, [](const MemoryPart& part) { return part.bytes == 0; });
  return parts;
}

int64_t MemoryPlan::total() const {
  return language_model.total() + codec.total() + codec_streams + step_arrays + decode_workspace +
         codec_workspace + clip_workspace + recordings + kv_pages * kv_page_bytes;
}

MemoryPlan plan_memory(const EngineConfig& config, const ModelSizes& sizes, int threads, int64_t available) {
  const dual_ar::Config& model = sizes.language_model;
  const int64_t streams = config.streams();
  // Steps that are recorded are rounded up, by less than to the next power of two.
  const auto rounded = static_cast<int64_t>(std::bit_ceil(static_cast<unsigned>(config.max_batch_size)));
  const int64_t rows = std::min(streams, rounded);
  const int64_t pages = (model.max_positions + config.kv_page_size - 1) / config.kv_page_size;
  MemoryPlan plan{
      .language_model = sizes.language_model_bytes(),
      .codec = sizes.codec_bytes(),
      .codec_streams = streams * sizes.codec_stream_bytes() + sizes.codec_pass_bytes(streams),
      .step_arrays = sizes.step_bytes(streams, pages),
      .codec_workspace = sizes.codec_workspace_bytes(threads) + sizes.scratch_bytes(threads),
      .recordings = recordings_bytes(config, sizes),
      .kv_page_bytes = dual_ar::KvCache::bytes_per_token(model, sizes.dtype) * config.kv_page_size,
      .available = available};
  if (sizes.with_encoder)
    plan.clip_workspace =
        sizes.encoder_workspace_bytes(kClipsAtATime, threads) + sizes.scratch_bytes(threads);
  const int64_t scratch = sizes.scratch_bytes(threads);
  plan.decode_workspace = std::max(scratch, scratch / 2 + sizes.parked_bytes(rows)) +
                          std::max(sizes.decode_workspace_bytes(rows),
                                   sizes.prefill_workspace_bytes(columns_of_a_step(config, sizes.device) +
                                                                 config.max_batch_size));
  plan.kv_pages = plan_kv_pages(config, model, sizes.dtype, std::max<int64_t>(0, available - plan.total()));
  return plan;
}

}  // namespace shoal::runtime
