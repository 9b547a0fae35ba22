// A batch on its way through the network: all of its tokens, then its frames, group by group.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/function_ref.h"
#include "models/kokoro/batch.h"
#include "models/kokoro/network.h"
#include "models/kokoro/rows.h"
#include "ops/transfer.h"

namespace shoal::kokoro {

// Frames that are made into sound together: 42 s keep every processor busy, and their last layers take 0.7
// gigabytes. A longer utterance goes alone.
inline constexpr int32_t kMostFrames = 1680;

// Of an utterance, in the device's memory.
struct Sound {
  TensorView samples;
  ops::Mark made;  // behind its group
};

struct BatchPass {
  ops::Context& ctx;
  const Network& network;
  const Tap* tap = nullptr;
  const BetweenStages* between = nullptr;

  // In the enclosing scope.  take: receives the logits of the durations, in the device's memory.
  Encoded encode(const TokenBatch& tokens, FunctionRef<void(TensorView logits)> take) const;

  // The samples of each utterance, in the enclosing scope. The stages after the durations need a thousand
  // times the memory of those before, hence the groups; a tap sees all groups together. seeds: of each
  // utterance; noise: replaces theirs, or null; spoken: the durations of each.
  std::vector<Sound> render(const Layout& tokens, const Encoded& encoded, std::span<const uint64_t> seeds,
                            const ops::SourceNoise* noise, std::span<const Spoken> spoken) const;

 private:
  ops::SourceNoise noise_of(const FrameBatch& frames, const ops::SourceNoise* given, int64_t begin) const;
};

}  // namespace shoal::kokoro
