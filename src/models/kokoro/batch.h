// What the host knows about a batch before it is computed, as arrays for kernels.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/kokoro/kokoro.h"
#include "models/kokoro/layout.h"
#include "models/kokoro/style.h"

namespace shoal::kokoro {

// As it is, or as recorded steps have one utterance (Layout::recorded).
enum class Padding { none, recorded };

// Its tokens.
struct TokenBatch {
  // At least one utterance; recorded: one.
  TokenBatch(const Config& config, std::span<const Utterance> utterances, Padding padding);

  Layout layout;
  std::vector<int32_t> parts;         // [rows, 3] of PlBert::forward
  std::vector<int32_t> utterance_of;  // [rows]
  std::vector<float> styles;          // [utterances, 2 * style_dim]
  SharedStyles shared;
};

// Its frames.
struct FrameBatch {
  // The utterances from number `first` of the tokens on, of which `spoken` has the durations.  seeds: of each
  // of these.
  FrameBatch(const Layout& tokens, int64_t first, std::span<const Spoken> spoken,
             std::span<const uint64_t> seeds, Padding padding);

  Layout layout;
  std::vector<int32_t> token_of;  // [rows], in gaps a gap's
  std::vector<uint64_t> seeds;    // [utterances]
};

// The frames of each.
std::vector<int32_t> frame_counts(std::span<const Spoken> spoken);

}  // namespace shoal::kokoro
