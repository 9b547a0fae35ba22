#include "ops/draw.h"

#include <list>
#include <set>
#include <utility>
#include <vector>

#include "ops/matrix_testing.h"
#include "ops/sample.h"
#include "ops/transfer.h"

namespace shoal::ops {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kCodebooks = 2, kMost = 16;

// Tokens 10..17 are semantic with 6 codes only, 3 ends, 20 in all.
TokenHead head_of(bool semantic) {
  return {.semantic_begin = 10, .semantic_end = 17, .im_end = 3, .semantic = semantic, .codebook_size = 6};
}

// The row of a token in the head; -1: none.
int32_t row_of(bool semantic, int32_t token) {
  if (!semantic) return token < 20 ? token : -1;
  if (token == 3) return 8;
  return token >= 10 && token <= 17 ? token - 10 : -1;
}

DrawRow greedy() { return {.top_p = kGreedyTopP}; }

template <size_t N>
int32_t fill(int32_t (&list)[N], const std::vector<int32_t>& ids) {
  CHECK(ids.size() <= N);
  std::ranges::copy(ids, list);
  return static_cast<int32_t>(ids.size());
}

void penalise(DrawRow& row, const std::vector<int32_t>& tokens) {
  row.penalised_tokens = fill(row.tokens, tokens);
  row.repetition_penalty = 2;
}

void set_recent(DrawRow& row, const std::vector<int32_t>& tokens) {
  row.recent = fill(row.recent_tokens, tokens);
}

using Peaks = std::vector<std::pair<int32_t, float>>;  // (token, logit)

class DrawTest : public testing::Test, protected MatrixFixture {
 protected:
  // In the device's memory until the test ends.
  TensorView settings(std::vector<DrawRow> rows) {
    kept_.push_back(std::move(rows));
    return upload(ctx_, std::as_bytes(std::span(kept_.back())))
        .reshape({static_cast<int64_t>(kept_.back().size()), static_cast<int64_t>(sizeof(DrawRow))});
  }

  static std::vector<float> logits_of(bool semantic, const Peaks& peaks) {
    std::vector<float> logits(semantic ? 9 : 20, 0.0f);
    for (const auto& [token, logit] : peaks)
      if (row_of(semantic, token) >= 0) logits[static_cast<size_t>(row_of(semantic, token))] = logit;
    return logits;
  }

  // The best token among `peaks`; the others have logit 0.
  int32_t token(bool semantic, const Peaks& peaks, const DrawRow& row) {
    std::vector<float> logits = logits_of(semantic, peaks);
    frame_.assign(1 + kCodebooks, -1);
    draw_tokens(ctx_, view_of(logits, {1, static_cast<int64_t>(logits.size())}), {settings({row}), {}},
                head_of(semantic), TensorView::of(frame_.data(), DType::i32, {1, 1 + kCodebooks}));
    EXPECT_EQ(frame_[2], -1) << "not this draw's";
    return frame_[0];
  }
  int32_t code() const { return frame_[1]; }

  std::vector<int32_t> frame_;
  std::list<std::vector<DrawRow>> kept_;
};

TEST_F(DrawTest, EveryRowOfTheHeadIsItsToken) {
  for (const int32_t token : {3, 10, 12, 17}) {
    EXPECT_EQ(this->token(true, {{token, 9.0f}}, greedy()), token);
    EXPECT_EQ(this->token(false, {{token, 9.0f}}, greedy()), token);
  }
  EXPECT_EQ(token(false, {{0, 9.0f}}, greedy()), 0);
  EXPECT_EQ(token(false, {{19, 9.0f}}, greedy()), 19);
}

TEST_F(DrawTest, TextTokensAndTokensBeyondTheCodebookHaveClampedCodes) {
  EXPECT_EQ(token(false, {{5, 9.0f}}, greedy()), 5);
  EXPECT_EQ(code(), 0);
  token(false, {{12, 9.0f}}, greedy());
  EXPECT_EQ(code(), 2);
  token(false, {{17, 9.0f}}, greedy());
  EXPECT_EQ(code(), 5);
}

TEST_F(DrawTest, RestrictedRowsNeverDrawText) {
  for (const bool semantic : {false, true}) {
    DrawRow row = greedy();
    row.restricted = 1;
    EXPECT_EQ(token(semantic, {{5, 9.0f}, {14, 8.0f}, {18, 9.0f}}, row), 14);
    EXPECT_EQ(token(semantic, {{5, 9.0f}, {3, 8.0f}}, row), 3);
    EXPECT_EQ(code(), 0);
  }
}

TEST_F(DrawTest, PenalisesTokenIdsWhereverTheyStandInTheHead) {
  for (const bool semantic : {false, true}) {
    DrawRow row = greedy();
    EXPECT_EQ(token(semantic, {{12, 9.0f}, {15, 5.0f}}, row), 12);
    penalise(row, {12, 12, 5, 3, 1000, -1});
    EXPECT_EQ(token(semantic, {{12, 9.0f}, {15, 5.0f}}, row), 15) << "9 / 2 < 5";
    EXPECT_EQ(token(semantic, {{12, 11.0f}, {15, 5.0f}}, row), 12) << "penalised once";
    row.penalised_tokens = 0;
    EXPECT_EQ(token(semantic, {{12, 9.0f}, {15, 5.0f}}, row), 12) << "what stands behind the count";
  }
}

// Three equal logits: greedily the first of them; the second draw keeps two (1/3 and 2/3 <= 0.9 < 1).
TEST_F(DrawTest, ARecentSemanticTokenIsRedrawn) {
  for (const bool semantic : {false, true}) {
    const Peaks peaks = {{11, 50.0f}, {13, 50.0f}, {16, 50.0f}, {3, 40.0f}};
    DrawRow row = greedy();
    row.restricted = 1;
    ASSERT_EQ(token(semantic, peaks, row), 11);
    std::set<int32_t> drawn;
    for (uint32_t frame = 0; frame < 64; ++frame) {
      row.frame = frame;
      set_recent(row, {13, 16, 0});
      EXPECT_EQ(token(semantic, peaks, row), 11) << "not recent";
      set_recent(row, {0, 11, 0});
      drawn.insert(token(semantic, peaks, row));
    }
    EXPECT_THAT(drawn, ElementsAre(11, 13));
    set_recent(row, {3});
    EXPECT_EQ(token(semantic, {{3, 50.0f}, {11, 50.0f}}, row), semantic ? 11 : 3) << "ties: lowest row";
    EXPECT_EQ(token(semantic, {{3, 50.0f}, {11, 49.0f}}, row), 3) << "the end is not semantic";
    set_recent(row, {0, 11, 0});
    row.top_k = 1;
    EXPECT_EQ(token(semantic, peaks, row), 11) << "top_k holds for the second draw too";
  }
}

// The first draw and the repeated one, as sample makes them with the settings of the contract.
TEST_F(DrawTest, NoiseDependsOnTheDrawIndex) {
  std::vector<float> logits = random_values(20, 1, 0.1f);
  const TensorView view = view_of(logits, {1, 20});
  int anew = 0;
  for (uint32_t frame = 0; frame < 50; ++frame) {
    DrawRow row{.seed = 9, .frame = frame, .temperature = 0.7f, .top_p = 0.95f};
    set_recent(row, {10, 11, 12, 13});
    SampleRow expected{.temperature = 0.7f, .top_p = 0.95f, .seed = 9, .frame = frame, .codebook = 0};
    int32_t want = -1;
    sample(ctx_, view, {&expected, 1}, {&want, 1});
    if (want >= 10 && want <= 13) {
      expected.temperature = 1.0f, expected.top_p = 0.9f, expected.codebook = 1000;
      sample(ctx_, view, {&expected, 1}, {&want, 1});
      ++anew;
    }
    std::vector<int32_t> frames(3);
    draw_tokens(ctx_, view, {settings({row}), {}}, head_of(false),
                TensorView::of(frames.data(), DType::i32, {1, 3}));
    EXPECT_EQ(frames[0], want) << frame;

    expected = {.temperature = 0.7f, .top_p = 0.95f, .seed = 9, .frame = frame, .codebook = 1};
    sample(ctx_, view, {&expected, 1}, {&want, 1});
    draw_codes(ctx_, view, {settings({row}), {}}, 1, TensorView::of(frames.data(), DType::i32, {1, 3}));
    EXPECT_EQ(frames[2], want) << frame;
  }
  EXPECT_GT(anew, 2);
  EXPECT_LT(anew, 48);
}

TEST_F(DrawTest, ResidualCodesArePenalisedByTheirOwnWindow) {
  std::vector<int32_t> codes(kCodebooks * kMost, 4), frame = {7, 8, 9};
  std::fill(codes.begin() + kMost, codes.end(), 2);
  codes[kMost] = 6, codes[kMost + 1] = -1;  // outside the codes of the logits: ignored
  DrawRow row = greedy();
  row.repetition_penalty = 2;
  row.penalised_codes = kMost;
  std::vector<float> logits = {0, 0, 9, 5, 6, 0};  // 9 / 2 < 6, and code 4 is codebook 0's affair
  const auto draw = [&] {
    const DrawTable table{settings({row}), TensorView::of(codes.data(), DType::i32, {1, kCodebooks, kMost})};
    draw_codes(ctx_, view_of(logits, {1, 6}), table, 1, TensorView::of(frame.data(), DType::i32, {1, 3}));
  };
  draw();
  EXPECT_THAT(frame, ElementsAre(7, 8, 4));
  row.penalised_codes = 2;
  draw();
  EXPECT_THAT(frame, ElementsAre(7, 8, 2)) << "the first two of the window are no codes";
}

TEST_F(DrawTest, ARowIsTheSameAloneAndInABatch) {
  constexpr size_t kRows = 17;
  std::vector<float> logits = random_values(kRows * 20, 3);
  std::vector<int32_t> codes;
  for (size_t i = 0; i < kRows * kCodebooks * kMost; ++i) codes.push_back(static_cast<int32_t>(i * 7 % 20));
  std::vector<DrawRow> rows(kRows);
  for (size_t i = 0; i < kRows; ++i) {
    rows[i] = {.seed = i / 3, .frame = static_cast<uint32_t>(i), .restricted = static_cast<int32_t>(i % 2)};
    penalise(rows[i], {static_cast<int32_t>(i), 12});
    set_recent(rows[i], {10, 11, static_cast<int32_t>(i)});
    rows[i].penalised_codes = static_cast<int32_t>(i % kMost);
  }
  const auto codes_of = [&](size_t row, int64_t count) {
    return TensorView::of(codes.data(), DType::i32, {kRows, kCodebooks, kMost})
        .slice(static_cast<int64_t>(row), static_cast<int64_t>(row) + count);
  };
  const TensorView all = view_of(logits, {kRows, 20});
  std::vector<int32_t> frames(kRows * 3), alone(3);
  const TensorView together = TensorView::of(frames.data(), DType::i32, {kRows, 3}),
                   one = TensorView::of(alone.data(), DType::i32, {1, 3});
  const DrawTable table{settings(rows), codes_of(0, kRows)};
  draw_tokens(ctx_, all, table, head_of(false), together);
  draw_codes(ctx_, all, table, 1, together);
  for (size_t i = 0; i < kRows; ++i) {
    const TensorView own = all.slice(static_cast<int64_t>(i), static_cast<int64_t>(i) + 1);
    const std::vector<DrawRow> row = {rows[i]};
    draw_tokens(ctx_, own, {settings(row), codes_of(i, 1)}, head_of(false), one);
    draw_codes(ctx_, own, {settings(row), codes_of(i, 1)}, 1, one);
    EXPECT_THAT(alone, ElementsAre(frames[3 * i], frames[3 * i + 1], frames[3 * i + 2])) << i;
  }
}

TEST_F(DrawTest, BadLogitsAndSettingsAreErrors) {
  const auto code_of = [&](const Peaks& peaks, const DrawRow& row) {
    try {
      token(false, peaks, row);
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::internal;
  };
  EXPECT_EQ(code_of({{5, std::nanf("")}}, greedy()), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of({}, {.temperature = -1}), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of({}, {.top_k = -1}), ErrorCode::invalid_argument);
  DrawRow row = greedy();
  row.penalised_tokens = kMostPenalised + 1;
  EXPECT_THROW(token(false, {}, row), Error);
  row = greedy(), row.recent = -1;
  EXPECT_THROW(token(false, {}, row), Error);

  std::vector<float> logits(20);
  std::vector<int32_t> frames(3);
  const TensorView view = view_of(logits, {1, 20}), frame = TensorView::of(frames.data(), DType::i32, {1, 3});
  row = greedy(), row.penalised_codes = 1;  // of none
  EXPECT_THROW(draw_codes(ctx_, view, {settings({row}), {}}, 1, frame), Error);
  EXPECT_THROW(draw_codes(ctx_, view, {settings({greedy()}), {}}, 0, frame), Error);
  EXPECT_THROW(draw_codes(ctx_, view, {settings({greedy()}), {}}, 2, frame), Error);
  EXPECT_THROW(draw_tokens(ctx_, view, {settings({greedy()}), {}}, head_of(true), frame), Error);
  EXPECT_THROW(draw_tokens(ctx_, view, {settings({greedy(), greedy()}), {}}, head_of(false), frame), Error);
}

}  // namespace
}  // namespace shoal::ops
