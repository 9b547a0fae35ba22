#include "runtime/families/language/memory_plan.h"

#include <algorithm>

#include "base/error.h"
#include "models/dac/inventory.h"
#include "models/dual_ar/step_memory.h"
#include "ops/device_state.h"
#include "ops/step_graph.h"
#include "runtime/families/language/clip_decoder.h"
#include "runtime/families/language/clip_encoder.h"
#include "runtime/families/language/codec_part.h"
#include "runtime/families/language/pipeline.h"
#include "runtime/families/language/prefill_budget.h"

namespace shoal::runtime {
namespace {

// The codec's passes of a few frames: an allowance.
constexpr int64_t kCodecRecordings = 32, kLaunchesOfPass = 150;

// Each matrix of 8 bits is widened by a launch of its own.
int64_t launches_of_pass(const ModelSizes& sizes) {
  if (!sizes.codec_in_8_bits) return kLaunchesOfPass;
  const auto tensors = dac::required_tensors(sizes.codec, dac::Parts::decode);
  return kLaunchesOfPass +
         std::ranges::count_if(tensors, [](const auto& tensor) { return tensor.outputs_axis.has_value(); });
}

// Of steps of every size that they are recorded with, each with and without its column, and of passes; for
// all multiprocessors and for a part of them.
int64_t recordings_bytes(const EngineConfig& config, const ModelSizes& sizes, const ThreadSplit& threads,
                         const dual_ar::DualAr& model) {
  if (!config.cuda_graphs || !ops::computes_by_itself(sizes.device)) return 0;
  const int64_t of_steps = 2 * dual_ar::StepMemory::recorded_sizes(config.max_batch_size);
  const int64_t shares = may_divide(config, threads) ? 2 : 1;
  return shares * (of_steps * model.launches_of_step() + kCodecRecordings * launches_of_pass(sizes)) *
         ops::kBytesOfLaunch;
}

// The workspace of steps, with some more: not steps of every size are planned, and a CPU's attention takes
// more at later positions.
int64_t decode_workspace(const dual_ar::DualAr& model, const dual_ar::DualAr::PlannedStep& step) {
  return op_scratch_bytes(step.device, step.threads) +
         std::max(model.decode_workspace_bytes(step), model.prefill_workspace_bytes(step));
}

int64_t clip_states(const dac::Codec& codec, bool with_encoder) {
  const int64_t encoding = with_encoder ? ClipEncoder::kClipsAtATime * codec.clip_bytes() : 0;
  return ClipDecoder::bytes(codec) + encoding;
}

// Of ClipDecoder and ClipEncoder, which share it on a GPU.
int64_t clip_workspace(const dac::Codec& codec, const ModelSizes& sizes, const ThreadSplit& threads) {
  constexpr int kClips = ClipEncoder::kClipsAtATime;
  const bool shared = ops::computes_by_itself(sizes.device);
  const int64_t decoding =
      codec.decode_workspace_bytes(1, shared ? threads.encode : 1, ClipDecoder::kFramesAtATime);
  const int64_t encoding = sizes.with_encoder ? codec.encode_workspace_bytes(kClips, threads.encode) : 0;
  return shared ? std::max(decoding, encoding) : decoding + encoding;
}

}  // namespace

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
      {"states of clips", clip_states},
      {"workspace of clips", clip_workspace},
      {"recordings", recordings},
      {"KV pages", kv_pages * kv_page_bytes},
  };
  std::erase_if(parts, [](const MemoryPart& part) { return part.bytes == 0; });
  return parts;
}

int64_t MemoryPlan::total() const {
  return language_model.total() + codec.total() + codec_streams + step_arrays + decode_workspace +
         codec_workspace + clip_states + clip_workspace + recordings + kv_pages * kv_page_bytes;
}

MemoryPlan plan_memory(const EngineConfig& config, const ModelSizes& sizes, const ThreadSplit& threads,
                       int64_t available) {
  const dual_ar::Config& model = sizes.language_model;
  const dual_ar::DualAr language_model = sizes.sized_language_model();
  const dac::Codec codec = sizes.sized_codec();
  const int64_t streams = config.streams();
  const int64_t pages = (model.max_positions + config.kv_page_size - 1) / config.kv_page_size;
  const dual_ar::DualAr::PlannedStep step{
      .device = sizes.device,
      .threads = threads.decode,
      .sequences = std::min(streams, dual_ar::StepMemory::recorded_rows(config.max_batch_size)),
      .columns = size_of_a_step(config, sizes.device).rows,
      .pages = pages};
  MemoryPlan plan{
      .language_model = language_model.memory(),
      .codec = codec.memory(),
      .codec_streams = streams * codec.stream_bytes() + codec.pass_bytes(streams),
      .step_arrays = dual_ar::StepMemory::bytes_of(model, streams, pages),
      .decode_workspace = decode_workspace(language_model, step),
      .codec_workspace = codec.decode_workspace_bytes(config.streams(), threads.of_codec()),
      .clip_states = clip_states(codec, sizes.with_encoder),
      .clip_workspace = clip_workspace(codec, sizes, threads),
      .recordings = recordings_bytes(config, sizes, threads, language_model),
      .kv_page_bytes = dual_ar::KvCache::bytes_per_token(model, sizes.formats.kv) * config.kv_page_size,
      .available = available};
  plan.kv_pages =
      plan_kv_pages(config, model, sizes.formats.kv, std::max<int64_t>(0, available - plan.total()));
  return plan;
}

}  // namespace shoal::runtime
