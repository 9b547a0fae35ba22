// The memory in which a single utterance is spoken: one step over its tokens and one over its frames. Its
// address never changes, so that the steps can be captured in CUDA graphs and replayed (ops/step_graph.h):
// inputs that vary are written here and copied to the device at once.
#pragma once

#include <cstdint>
#include <span>

#include "models/kokoro/batch.h"
#include "models/kokoro/config.h"
#include "models/kokoro/network.h"
#include "ops/step_graph.h"
#include "tensor/tensor.h"

namespace shoal::kokoro {

// The inputs of the step over tokens in the device's memory, and its outputs for the host.
struct TokenStep {
  int64_t bytes = 0;  // of the inputs
  TensorView tables;  // Layout::tables
  TokenInputs inputs;
  TensorView logits;  // f32 [rows, max_dur]
};

// The same of the step over frames.
struct FrameStep {
  int64_t bytes = 0;    // of the inputs
  TensorView tables;    // Layout::tables
  TensorView token_of;  // i32 [rows]
  TensorView seeds;     // i64 [1]
  TensorView samples;   // f32 [rows * samples_per_frame]
};

class StepMemory {
 public:
  // Frames at most: 16 s. Of tokens as many as an utterance may have.
  static constexpr int64_t kMostRecordedFrames = 640;

  // Throws Error(resource_exhausted).
  StepMemory(ops::Context& ctx, const Network& network);
  // Of the device's memory.
  int64_t bytes() const { return bytes_; }
  // The same before there is one.
  static int64_t bytes_of(const Network& network);

  // ops::new_step_serial.
  int64_t serial() const { return serial_; }
  // Whether the step over tokens is for these, and then the step over frames for this.
  static bool takes(std::span<const Utterance> utterances) { return utterances.size() == 1; }
  static bool takes(const Spoken& spoken) { return spoken.frames() <= kMostRecordedFrames; }

  // Data between the two steps. d and text: sized for the most tokens; a step uses the first rows.
  Encoded encoded() const;
  // Writes the inputs of the next step on the host. The positions of its arrays depend only on the layout's
  // total.
  TokenStep write(const TokenBatch& batch) const;
  FrameStep write(const FrameBatch& batch) const;

  // Ops: copy the inputs to the device, and the outputs to the host.
  void bring(ops::Context& ctx, const TokenStep& step) const { token_block_.copy_to_device(ctx, step.bytes); }
  void bring(ops::Context& ctx, const FrameStep& step) const { frame_block_.copy_to_device(ctx, step.bytes); }
  void fetch(ops::Context& ctx, const TokenStep& step) const {
    logits_.copy_to_host(ctx, step.logits.bytes());
  }
  void fetch(ops::Context& ctx, const FrameStep& step) const {
    samples_.copy_to_host(ctx, step.samples.bytes());
  }
  // The outputs on the host: f32 [rows, max_dur], and as many samples as the block can hold.
  TensorView host_logits(const TokenStep& step) const;
  std::span<const float> host_samples() const;

 private:
  int64_t serial_, bytes_;
  int64_t max_dur_, samples_per_frame_, style_width_;  // the last: of both halves
  Tensor prosody_, decoder_, d_, text_;
  ops::StepBlock token_block_, logits_, frame_block_, samples_;
};

}  // namespace shoal::kokoro
