#include "models/dual_ar/frame_sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>
#include <vector>

#include "ops/sample.h"
#include "tests/parity/lm_driver.h"

namespace shoal::dual_ar {
namespace {

using ::testing::ElementsAre;

// Tokens 10..17 are semantic with 6 codes only, 3 ends, 20 in all.
Config small_config(Family family) {
  Config config;
  config.family = family;
  config.vocab_size = 20;
  config.num_codebooks = 2;
  config.codebook_size = 6;
  config.semantic_begin = 10;
  config.semantic_end = 17;
  config.im_end = 3;
  return config;
}

// The best token among `peaks`, given as (token, logit); the others have logit 0.
class Draw {
 public:
  Draw(Family family, bool semantic_head) : sampler_(small_config(family), semantic_head) {}

  int32_t token(const std::vector<std::pair<int32_t, float>>& peaks, const FrameRequest& request) {
    std::vector<float> logits(static_cast<size_t>(sampler_.head().rows()), 0.0f);
    for (const auto& [token, logit] : peaks)
      if (sampler_.head().row(token) >= 0) logits[static_cast<size_t>(sampler_.head().row(token))] = logit;
    frame_.assign(3, -1);
    sampler_.draw_tokens(machine_.context,
                         TensorView::of(logits.data(), DType::f32, {1, sampler_.head().rows()}),
                         {&request, 1}, frame_);
    return frame_[0];
  }
  int32_t code() const { return frame_[1]; }

 private:
  parity::LmMachine machine_;
  FrameSampler sampler_;
  std::vector<int32_t> frame_;
};

FrameRequest greedy() { return {.top_p = ops::kGreedyTopP}; }

TEST(HeadTokens, MapsRowsAndTokensBothWays) {
  const HeadTokens semantic(small_config(Family::s2), true);
  EXPECT_EQ(semantic.rows(), 9);
  EXPECT_EQ(semantic.token(0), 10);
  EXPECT_EQ(semantic.token(7), 17);
  EXPECT_EQ(semantic.token(8), 3);
  EXPECT_EQ(semantic.row(3), 8);
  EXPECT_EQ(semantic.row(12), 2);
  EXPECT_EQ(semantic.row(9), -1);
  EXPECT_EQ(semantic.row(18), -1);
  const HeadTokens whole(small_config(Family::s1), false);
  EXPECT_EQ(whole.rows(), 20);
  EXPECT_EQ(whole.token(19), 19);
  EXPECT_EQ(whole.row(20), -1);
}

TEST(FrameSampler, TextTokensAndTokensBeyondTheCodebookHaveClampedCodes) {
  Draw draw(Family::s1, false);
  EXPECT_EQ(draw.token({{5, 9.0f}}, greedy()), 5);
  EXPECT_EQ(draw.code(), 0);
  draw.token({{12, 9.0f}}, greedy());
  EXPECT_EQ(draw.code(), 2);
  draw.token({{17, 9.0f}}, greedy());
  EXPECT_EQ(draw.code(), 5);
}

TEST(FrameSampler, SemanticOnlyNeverDrawsText) {
  for (const bool semantic_head : {false, true}) {
    Draw draw(Family::s1, semantic_head);
    FrameRequest request = greedy();
    request.semantic_only = true;
    EXPECT_EQ(draw.token({{5, 9.0f}, {14, 8.0f}, {18, 9.0f}}, request), 14);
    EXPECT_EQ(draw.token({{5, 9.0f}, {3, 8.0f}}, request), 3);
    EXPECT_EQ(draw.code(), 0);
  }
}

TEST(FrameSampler, PenalisesTokenIdsWhereverTheyStandInTheHead) {
  const std::vector<int32_t> penalised = {12, 12, 5, 3, 1000};
  for (const bool semantic_head : {false, true}) {
    Draw draw(Family::s1, semantic_head);
    FrameRequest request = greedy();
    EXPECT_EQ(draw.token({{12, 9.0f}, {15, 5.0f}}, request), 12);
    request.penalised_tokens = penalised;
    request.repetition_penalty = 2;
    EXPECT_EQ(draw.token({{12, 9.0f}, {15, 5.0f}}, request), 15) << "9 / 2 < 5";
    EXPECT_EQ(draw.token({{12, 11.0f}, {15, 5.0f}}, request), 12) << "penalised once";
  }
}

TEST(FrameSampler, ResidualCodesArePenalisedByTheirOwnWindow) {
  parity::LmMachine machine;
  const FrameSampler sampler(small_config(Family::s1), false);
  std::vector<int32_t> window(2 * kPenaltyWindow, 4);
  std::fill(window.begin() + kPenaltyWindow, window.end(), 2);
  FrameRequest request = greedy();
  request.repetition_penalty = 2;
  request.penalised_codes = window;
  std::vector<float> logits = {0, 0, 9, 5, 6, 0};  // 9 / 2 < 6, and code 4 is codebook 0's affair
  std::vector<int32_t> frame = {7, 8, 9};
  sampler.draw_codes(machine.context, TensorView::of(logits.data(), DType::f32, {1, 6}), {&request, 1}, 1,
                     frame);
  EXPECT_THAT(frame, ElementsAre(7, 8, 4));
}

// Three equal logits: greedily the first of them; the second draw keeps two (1/3 and 2/3 <= 0.9 < 1).
TEST(FrameSampler, S2DrawsARecentSemanticTokenAnew) {
  for (const bool semantic_head : {false, true}) {
    Draw draw(Family::s2, semantic_head);
    const std::vector<std::pair<int32_t, float>> peaks = {{11, 50.0f}, {13, 50.0f}, {16, 50.0f}, {3, 40.0f}};
    const std::vector<int32_t> recent = {0, 11, 0}, other = {13, 16, 0}, end = {3};
    FrameRequest request = greedy();
    request.semantic_only = true;
    const int32_t first = draw.token(peaks, request);
    ASSERT_EQ(first, 11);
    std::set<int32_t> drawn;
    for (uint32_t frame = 0; frame < 64; ++frame) {
      request.frame = frame;
      request.recent_tokens = other;
      EXPECT_EQ(draw.token(peaks, request), 11) << "not recent";
      request.recent_tokens = recent;
      drawn.insert(draw.token(peaks, request));
    }
    EXPECT_THAT(drawn, ElementsAre(11, 13));
    request.recent_tokens = end;
    EXPECT_EQ(draw.token({{3, 50.0f}, {11, 50.0f}}, request), semantic_head ? 11 : 3) << "ties: lowest row";
    EXPECT_EQ(draw.token({{3, 50.0f}, {11, 49.0f}}, request), 3) << "<|im_end|> is not semantic";
    request.recent_tokens = recent;
    request.top_k = 1;
    EXPECT_EQ(draw.token(peaks, request), 11) << "top_k holds for the second draw too";
  }
}

}  // namespace
}  // namespace shoal::dual_ar
