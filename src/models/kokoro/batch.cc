#include "models/kokoro/batch.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "models/kokoro/plbert.h"

namespace shoal::kokoro {
namespace {

Layout layout_of(std::vector<int32_t> lengths, Padding padding) {
  if (padding == Padding::none) return Layout(std::move(lengths));
  CHECK(lengths.size() == 1, lengths.size(), " utterances recorded");
  return Layout::recorded(lengths[0]);
}

std::vector<int32_t> token_counts(std::span<const Utterance> utterances) {
  std::vector<int32_t> counts;
  for (const Utterance& utterance : utterances) counts.push_back(static_cast<int32_t>(utterance.ids.size()));
  return counts;
}

SharedStyles shared_styles(std::span<const Utterance> utterances) {
  std::vector<std::span<const float>> styles;
  for (const Utterance& utterance : utterances) styles.push_back(utterance.style);
  return SharedStyles(styles);
}

}  // namespace

std::vector<int32_t> frame_counts(std::span<const Spoken> spoken) {
  std::vector<int32_t> counts;
  for (const Spoken& one : spoken) counts.push_back(static_cast<int32_t>(one.frames()));
  return counts;
}

TokenBatch::TokenBatch(const Config& config, std::span<const Utterance> utterances, Padding padding)
    : layout(layout_of(token_counts(utterances), padding)),
      utterance_of(layout.utterance_of_row()),
      shared(shared_styles(utterances)) {
  for (int64_t row = 0; row < layout.total(); ++row) {
    const auto part = PlBert::parts(config, 0, 0);
    parts.insert(parts.end(), part.begin(), part.end());
  }
  for (size_t u = 0; u < utterances.size(); ++u) {
    auto to = parts.begin() + 3 * layout.begin(static_cast<int64_t>(u));
    int32_t position = 0;
    for (const int32_t id : utterances[u].ids)
      to = std::ranges::copy(PlBert::parts(config, id, position++), to).out;
    styles.insert(styles.end(), utterances[u].style.begin(), utterances[u].style.end());
  }
}

FrameBatch::FrameBatch(const Layout& tokens, int64_t first, std::span<const Spoken> spoken,
                       std::span<const uint64_t> of_seeds, Padding padding)
    : layout(layout_of(frame_counts(spoken), padding)),
      token_of(static_cast<size_t>(layout.total()), 0),  // row 0 is a gap
      seeds(of_seeds.begin(), of_seeds.end()) {
  for (size_t u = 0; u < spoken.size(); ++u) {
    auto to = token_of.begin() + layout.begin(static_cast<int64_t>(u));
    auto token = static_cast<int32_t>(tokens.begin(first + static_cast<int64_t>(u)));
    for (const int32_t duration : spoken[u].durations) to = std::fill_n(to, duration, token++);
  }
}

}  // namespace shoal::kokoro
