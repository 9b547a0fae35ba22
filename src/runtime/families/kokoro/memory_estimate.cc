// What an engine with a Kokoro model would take of its device, from the files' headers alone.
#include "base/error.h"
#include "base/thread_team.h"
#include "ops/device_state.h"
#include "runtime/engine/model_precision.h"
#include "runtime/engine/useful_threads.h"
#include "runtime/families/kokoro/kokoro_family.h"
#include "runtime/families/kokoro/kokoro_memory.h"
#include "runtime/families/kokoro/kokoro_model.h"

namespace shoal::runtime {

MemoryEstimate KokoroFamily::estimate_memory(const EngineConfig& config, Device device,
                                             int64_t available) const {
  check_kokoro_formats(config);
  const KokoroSizes sizes = kokoro_sizes(config.model, config.precision, device);
  const int threads = useful_threads(config.threads, ThreadTeam::available_cpus());
  const KokoroMemoryPlan plan =
      plan_kokoro_memory(config, sizes.config, sizes.dtype, device, threads, available);
  const int64_t audio_s = plan.batch.frames * sizes.config.samples_per_frame() / kokoro::kSampleRateHz;
  return {.device = ops::describe(device),
          .formats = names_of(precision_of(sizes.dtype)),
          .capacity = concat(plan.batch.utterances, " utterances a batch"),
          .remark = concat("A batch of at most ", plan.batch.tokens, " phonemes and ", plan.batch.frames,
                           " frames, ", audio_s,
                           " s of sound at the usual pace. Speech that is slower takes more."),
          .parts = plan.parts(),
          .figures = {{"max_batch_size", config.max_batch_size},
                      {"batch_phonemes", plan.batch.tokens},
                      {"batch_frames", plan.batch.frames}},
          .available_bytes = available};
}

}  // namespace shoal::runtime
