// The heavy calls of a model, behind an interface: the engine's loops use only these, and tests replace them
// by calls that fail or are slow.
#pragma once

#include <span>

#include "models/dac/codec.h"
#include "models/dual_ar/dual_ar.h"
#include "ops/context.h"
#include "runtime/families/language/speech_model.h"

namespace shoal::runtime {

// Arguments and errors are those of the matching functions of dual_ar::DualAr, dual_ar::KvCache and
// dac::Codec. A call that throws may have written only to the outputs and pages in its arguments; calling it
// again, for all rows or some of them, gives the result of a single call.
class ModelCalls {
 public:
  explicit ModelCalls(const SpeechModel& model) : model_(model) {}
  virtual ~ModelCalls() = default;

  virtual void forward(ops::Context& ctx, const ops::BatchPlan& plan, std::span<const int32_t> columns,
                       dual_ar::KvCache& cache, TensorView hidden) {
    model_.language_model().forward_slow(ctx, plan, columns, cache, hidden);
  }
  virtual void generate_frames(ops::Context& ctx, const dual_ar::StepMemory& memory,
                               std::span<const dual_ar::FrameRequest> requests, std::span<int32_t> frames) {
    model_.language_model().generate_frames(ctx, memory, requests, frames);
  }
  virtual void decode_frames(ops::Context& ctx, const dual_ar::StepMemory& memory, const ops::BatchPlan& plan,
                             std::span<const int32_t> columns,
                             std::span<const dual_ar::FrameRequest> requests, dual_ar::KvCache& cache,
                             std::span<int32_t> frames) {
    model_.language_model().decode_frames(ctx, memory, plan, columns, requests, cache, frames);
  }
  virtual void copy_page(ops::Context& ctx, dual_ar::KvCache& cache, int64_t from, int64_t to) {
    cache.copy_page(ctx, from, to);
  }
  virtual void decode_streams(ops::Context& ctx, std::span<dac::CodecStream* const> streams,
                              ops::RaggedRows new_frames, std::span<const int32_t> codes,
                              std::span<float> pcm) {
    model_.codec().decode_streams(ctx, streams, new_frames, codes, pcm);
  }

 private:
  const SpeechModel& model_;
};

}  // namespace shoal::runtime
