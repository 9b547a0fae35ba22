#include "models/kokoro/memory_sizes.h"

#include <algorithm>

#include "models/kokoro/layout.h"
#include "models/kokoro/loader.h"
#include "models/kokoro/network.h"
#include "models/kokoro/rows.h"
#include "models/kokoro/step_memory.h"
#include "ops/device_state.h"
#include "ops/planning_context.h"
#include "ops/step_graph.h"

namespace shoal::kokoro {
namespace {

constexpr int64_t kFloat = sizeof(float);

// All parts of the model, without memory.
class SizedNetwork {
 public:
  SizedNetwork(const Config& config, DType dtype, Device device)
      : planning_(device),
        front_(names_, planning_.context(), DType::f32),
        back_(names_, planning_.context(), dtype),
        network_(front_, back_, config) {}
  const Network* operator->() const { return &network_; }
  const Network& operator*() const { return network_; }

 private:
  weights::NamesOnly names_;
  ops::PlanningContext planning_;
  Loader front_, back_;
  Network network_;
};

// Rows of a buffer, gaps included.
int64_t with_gaps(int64_t rows, int64_t utterances) { return rows + kGap * (utterances + 1) + 1; }

// Bytes of what steps have at their peak; all that follow one another stand on the same ground.
class Sizes {
 public:
  Sizes(const Config& config, const BatchSize& batch, DType dtype, Device device)
      : c_(config),
        batch_(batch),
        tokens_(with_gaps(batch.tokens, batch.utterances)),
        frames_(
            with_gaps(batch.frames_together, 1 + batch.utterances * batch.frames_together / batch.frames)) {
    const bool rounds_itself = ops::computes_by_itself(device);
    input_ = rounds_itself ? size_of(dtype) : kFloat;
    copy_ = dtype == DType::f32 || rounds_itself ? 0 : size_of(dtype);
    const SizedNetwork network(config, dtype, device);
    style_columns_ = network->prosody_columns() + network->decoder_columns();
  }

  int64_t peak() const {
    const int64_t styles = 2 * c_.style_dim + style_columns_;
    const int64_t kept = batch_.utterances * styles * kFloat +
                         tokens_ * (2 * c_.hidden_dim + c_.style_dim + 4) * kFloat +
                         (batch_.frames + frames_ - batch_.frames_together) * c_.samples_per_frame() * kFloat;
    return kept + std::max({durations(), text(), sound()});
  }

 private:
  // A BiLSTM's input products.
  int64_t lstm() const { return 4 * c_.hidden_dim; }

  int64_t durations() const {
    const int64_t passes = std::max(4 * c_.bert_dim, c_.bert_intermediate);
    const int64_t bert = c_.embedding_dim + c_.bert_dim + passes + 4;
    return tokens_ * (c_.max_dur + std::max(bert, c_.hidden_dim + lstm())) * kFloat;
  }
  int64_t text() const { return tokens_ * (2 * c_.hidden_dim + lstm()) * kFloat; }

  // Rows of a stage's `rate` of a frame.
  int64_t rows(int64_t channels, int64_t rate = 1) const { return frames_ * rate * channels * kFloat; }
  // What a convolution reads, where it may be rounded before or while it is read.
  int64_t input(int64_t channels, int64_t rate = 1) const {
    return frames_ * rate * channels * (input_ + copy_);
  }

  // What a stage's input, or the last convolution's, is rounded to beside itself, where it is.
  int64_t rounded_copy(int64_t channels, int64_t rate) const {
    return input_ < kFloat ? input(channels, rate) : 0;
  }

  // Beside the output, which the caller has.
  int64_t styled_block(int64_t in, int64_t out, bool upsample) const {
    if (!upsample) return input(in) + rows(out) + input(out);
    return rows(in) + rows(in, 2) + frames_ * 2 * in * copy_ + rows(out, 2) + input(out, 2) + rows(out);
  }

  int64_t pitch() const {
    const int64_t width = c_.hidden_dim, half = width / 2;
    const int64_t stack =
        std::max({styled_block(width, width, false), rows(half, 2) + styled_block(width, half, true),
                  2 * rows(half, 2) + rows(half, 2) + 2 * rows(half, 2)});
    return rows(2 * width + c_.style_dim) + std::max(rows(lstm()), rows(width) + stack);
  }

  int64_t decoder() const {
    const int64_t width = c_.decoder_width, inputs = width + c_.decoder_asr_width + 2;
    const int64_t blocks = std::max({rows(c_.hidden_dim + 2) + styled_block(c_.hidden_dim + 2, width, false),
                                     styled_block(inputs, width, false),
                                     styled_block(inputs, c_.upsample_initial_channel, true)});
    return rows(c_.hidden_dim + 2 * inputs) + blocks;
  }

  // A stage has its input added up, what it adds up, and a block with its result, two tensors of its own, and
  // what its convolutions read or, on a GPU, a second result.
  int64_t generator() const {
    int64_t sums = 0, peak = 0, rate = 2, channels = c_.upsample_initial_channel;
    for (const int64_t times : c_.upsample_rates) {
      sums += rounded_copy(channels, rate);
      rate *= times;
      channels /= 2;
      sums += rows(channels, rate);
      const int64_t moments = rows(channels, rate) / 32;  // of blocks of 64 rows
      const int64_t fourth = std::max(input(channels, rate), rows(channels, rate));
      peak = std::max(peak, sums + 3 * rows(channels, rate) + fourth + moments);
    }
    return std::max(peak, sums + rounded_copy(channels, rate) + rows(c_.gen_istft_n_fft + 2, rate));
  }

  int64_t sound() const {
    const int64_t spectra = 2 * c_.samples_per_f0() / c_.gen_istft_hop_size;
    const int64_t source = rows(c_.samples_per_frame());
    return rows(4 + 2 * c_.upsample_initial_channel) +
           std::max(pitch(),
                    rows(c_.gen_istft_n_fft + 2, spectra) + std::max({source, decoder(), generator()}));
  }

  const Config& c_;
  const BatchSize& batch_;
  const int64_t tokens_, frames_;  // rows
  int64_t input_ = 0, copy_ = 0;   // of one value
  int64_t style_columns_ = 0;      // scales and shifts of an utterance's norms
};

}  // namespace

WeightBytes weight_bytes(const Config& config, DType dtype, Device device) {
  return SizedNetwork(config, dtype, device)->weight_bytes();
}

StepBytes step_bytes(const Config& config) {
  constexpr int64_t kTokenLaunches = 165, kFrameLaunches = 283;  // at the published sizes
  const int64_t launches = Layout::recorded_sizes(config.max_positions) * kTokenLaunches +
                           Layout::recorded_sizes(StepMemory::kMostRecordedFrames) * kFrameLaunches;
  return {.memory = StepMemory::bytes_of(*SizedNetwork(config, DType::f32, {})),
          .recordings = launches * ops::kBytesOfLaunch};
}

int64_t workspace_bytes(const Config& config, const BatchSize& batch, DType dtype, Device device) {
  return Sizes(config, batch, dtype, device).peak();
}

}  // namespace shoal::kokoro
