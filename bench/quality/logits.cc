#include "bench/quality/logits.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace shoal::quality {
namespace {

using nlohmann::ordered_json;

constexpr int64_t kPositions[] = {0, 16, 64, 256};

double log_sum_exp(std::span<const float> logits) {
  const bool numbers = std::ranges::all_of(logits, [](float x) { return x < INFINITY; });
  const double largest = logits.empty() ? -INFINITY : *std::ranges::max_element(logits);
  if (!numbers || largest == -INFINITY) fail(ErrorCode::internal, "logits are not numbers");
  double sum = 0;
  for (const float value : logits) sum += std::exp(value - largest);
  return largest + std::log(sum);
}

auto top(std::span<const float> logits) { return std::ranges::max_element(logits) - logits.begin(); }

// Row `index` of [rows, width].
std::span<const float> row(const std::vector<float>& all, size_t index, int64_t width) {
  return std::span(all).subspan(index * static_cast<size_t>(width), static_cast<size_t>(width));
}

}  // namespace

double kl_divergence(std::span<const float> reference, std::span<const float> other) {
  CHECK(reference.size() == other.size(), reference.size(), " outputs, the other has ", other.size());
  const double all = log_sum_exp(reference), all_other = log_sum_exp(other);
  double sum = 0;
  for (size_t i = 0; i < reference.size(); ++i) {
    const double log_p = reference[i] - all, p = std::exp(log_p);
    if (p > 0) sum += p * (log_p - (other[i] - all_other));
  }
  return std::max(0.0, sum);  // rounding may leave -1e-17
}

void HeadComparison::Sum::add(double divergence, bool agrees) {
  ++rows;
  agreeing += agrees;
  kl += divergence;
  worst_kl = std::max(worst_kl, divergence);
}

ordered_json HeadComparison::Sum::figures() const {
  return {{"rows", rows},
          {"mean_kl", rows ? kl / static_cast<double>(rows) : 0},
          {"worst_kl", worst_kl},
          {"agreement", agreement()}};
}

void HeadComparison::add(size_t text, int64_t frame, std::span<const float> reference,
                         std::span<const float> other) {
  const double kl = kl_divergence(reference, other);
  if (kl > all_.worst_kl) worst_text_ = text, worst_frame_ = frame;
  texts_.resize(std::max(texts_.size(), text + 1));
  positions_.resize(std::size(kPositions));
  const auto position = std::ranges::upper_bound(kPositions, frame) - kPositions - 1;
  for (Sum* sum : {&all_, &texts_[text], &positions_[static_cast<size_t>(position)]})
    sum->add(kl, top(reference) == top(other));
}

ordered_json HeadComparison::figures() const {
  double worst = 1;
  for (const Sum& text : texts_) worst = std::min(worst, text.agreement());
  ordered_json figures = all_.figures(), positions = ordered_json::array();
  figures.update({{"worst_text", worst_text_}, {"worst_frame", worst_frame_}, {"worst_agreement", worst}});
  for (size_t i = 0; i < positions_.size(); ++i) {
    if (positions_[i].rows == 0) continue;
    positions.push_back({{"first_frame", kPositions[i]}});
    positions.back().update(positions_[i].figures());
  }
  figures["positions"] = positions;
  return figures;
}

ordered_json compare_logits(ForcedLogits& reference, ForcedLogits& other,
                            const std::vector<ForcedText>& texts,
                            const std::function<void(size_t text)>& on_text) {
  const LogitShape shape = reference.shape(), own = other.shape();
  if (own != shape)
    fail(ErrorCode::invalid_argument, "the models cannot be compared: heads of ", own.semantic, " and ",
         own.codebooks, " times ", own.residual, " outputs, the reference's have ", shape.semantic, " and ",
         shape.codebooks, " times ", shape.residual);
  const auto later = static_cast<size_t>(shape.codebooks - 1);
  HeadComparison semantic, fast;
  for (size_t text = 0; text < texts.size(); ++text) {
    on_text(text);
    for (ForcedLogits* side : {&reference, &other}) side->begin(texts[text].request, texts[text].codes);
    LogitPiece a, b;
    while (reference.next(a)) {
      CHECK(other.next(b) && b.semantic.size() == a.semantic.size(), "pieces of different frames");
      for (size_t i = 0; i < a.semantic.size() / static_cast<size_t>(shape.semantic); ++i)
        semantic.add(text, a.first + static_cast<int64_t>(i), row(a.semantic, i, shape.semantic),
                     row(b.semantic, i, shape.semantic));
      for (size_t i = 0; i < a.residual.size() / static_cast<size_t>(shape.residual); ++i)
        fast.add(text, a.first + static_cast<int64_t>(i / later), row(a.residual, i, shape.residual),
                 row(b.residual, i, shape.residual));
    }
  }
  return {{"semantic", semantic.figures()}, {"fast", fast.figures()}};
}

}  // namespace shoal::quality
