// For the engine's tests: a model whose calls fail where a test asks for it.
#pragma once

#include <algorithm>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "runtime/families/language/model_calls.h"
#include "runtime/families/language/pipeline.h"

namespace shoal::runtime::testing {

enum class Op { forward, generate_frames, copy_page, decode_streams };
inline constexpr Op kOps[] = {Op::forward, Op::generate_frames, Op::copy_page, Op::decode_streams};

struct OpCall {
  Op op = Op::forward;
  std::span<const int32_t> ids = {};                     // columns of forward, codes of decode_streams
  std::span<const dual_ar::FrameRequest> requests = {};  // of generate_frames
};

struct Fault {
  std::exception_ptr error;           // thrown by the call; null: it succeeds
  bool half_way = false;              // not at once, but after nonsense was written wherever a call may write
  std::function<void()> before = {};  // called first, while other calls go on
};

// What becomes of each call, and a count of them. Thread-safe.
class Faults {
 public:
  using Plan = std::function<Fault(const OpCall&)>;

  // From the next call on. The engine's threads ask the plan, one at a time.
  void set(Plan plan) {
    const std::lock_guard lock(mutex_);
    plan_ = std::move(plan);
    failed_ = 0;
  }
  // Calls that have failed since set().
  int64_t failed() const {
    const std::lock_guard lock(mutex_);
    return failed_;
  }
  Fault of(const OpCall& call) {
    const Fault fault = planned(call);
    if (fault.before) fault.before();
    return fault;
  }

 private:
  Fault planned(const OpCall& call) {
    const std::lock_guard lock(mutex_);
    Fault fault = plan_ ? plan_(call) : Fault{};
    if (fault.error) ++failed_;
    return fault;
  }

  mutable std::mutex mutex_;
  Plan plan_;
  int64_t failed_ = 0;
};

class FaultyCalls : public ModelCalls {
 public:
  FaultyCalls(const SpeechModel& model, Faults& faults) : ModelCalls(model), faults_(faults) {}

  void forward(ops::Context& ctx, const ops::BatchPlan& plan, std::span<const int32_t> columns,
               dual_ar::KvCache& cache, TensorView hidden) override {
    const Fault fault = at_once({.op = Op::forward, .ids = columns});
    if (fault.half_way) {
      const std::vector<int32_t> others(columns.size(), 0);
      ModelCalls::forward(ctx, plan, others, cache, hidden);
    }
    finish(fault);
    ModelCalls::forward(ctx, plan, columns, cache, hidden);
  }
  void generate_frames(ops::Context& ctx, const dual_ar::StepMemory& memory,
                       std::span<const dual_ar::FrameRequest> requests, std::span<int32_t> frames) override {
    fail_drawing(requests, frames);
    ModelCalls::generate_frames(ctx, memory, requests, frames);
  }
  // Fails like either of the two calls that it replaces.
  void decode_frames(ops::Context& ctx, const dual_ar::StepMemory& memory, const ops::BatchPlan& plan,
                     std::span<const int32_t> columns, std::span<const dual_ar::FrameRequest> requests,
                     dual_ar::KvCache& cache, std::span<int32_t> frames) override {
    const Fault fault = at_once({.op = Op::forward, .ids = columns});
    if (fault.half_way) {
      const std::vector<int32_t> others(columns.size(), 0);
      ModelCalls::decode_frames(ctx, memory, plan, others, requests, cache, frames);
    }
    finish(fault);
    fail_drawing(requests, frames);
    ModelCalls::decode_frames(ctx, memory, plan, columns, requests, cache, frames);
  }
  void copy_page(ops::Context& ctx, dual_ar::KvCache& cache, int64_t from, int64_t to) override {
    const Fault fault = at_once({.op = Op::copy_page});
    if (fault.half_way) ModelCalls::copy_page(ctx, cache, to == 0 ? cache.pages() - 1 : 0, to);
    finish(fault);
    ModelCalls::copy_page(ctx, cache, from, to);
  }
  void decode_streams(ops::Context& ctx, std::span<dac::CodecStream* const> streams,
                      ops::RaggedRows new_frames, std::span<const int32_t> codes,
                      std::span<float> pcm) override {
    const Fault fault = at_once({.op = Op::decode_streams, .ids = codes});
    if (fault.half_way) {
      const std::vector<int32_t> others(codes.size(), 0);
      ModelCalls::decode_streams(ctx, streams, new_frames, others, pcm);
      std::fill(pcm.begin(), pcm.end(), std::numeric_limits<float>::quiet_NaN());
    }
    finish(fault);
    ModelCalls::decode_streams(ctx, streams, new_frames, codes, pcm);
  }

 private:
  Fault at_once(const OpCall& call) {
    Fault fault = faults_.of(call);
    if (fault.error && !fault.half_way) std::rethrow_exception(fault.error);
    return fault;
  }
  void fail_drawing(std::span<const dual_ar::FrameRequest> requests, std::span<int32_t> frames) {
    const Fault fault = at_once({.op = Op::generate_frames, .requests = requests});
    if (fault.half_way) std::fill(frames.begin(), frames.end(), -1);
    finish(fault);
  }
  static void finish(const Fault& fault) {
    if (fault.error) std::rethrow_exception(fault.error);
  }

  Faults& faults_;
};

inline Pipeline::MakeCalls faulty(Faults& faults) {
  return [&faults](const SpeechModel& model) { return std::make_unique<FaultyCalls>(model, faults); };
}

}  // namespace shoal::runtime::testing
