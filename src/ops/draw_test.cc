#include "ops/draw.h"

#include <set>
#include <utility>
#include <vector>

#include "ops/draw_testing.h"
#include "ops/sample.h"

namespace shoal::ops {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kTwoCodebooks = 2, kWindow = 16;

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

class DrawTest : public DrawMachine {
 protected:
  static std::vector<float> logits_of(bool semantic, const Peaks& peaks) {
    std::vector<float> logits(semantic ? 9 : 20, 0.0f);
    for (const auto& [token, logit] : peaks)
      if (row_of(semantic, token) >= 0) logits[static_cast<size_t>(row_of(semantic, token))] = logit;
    return logits;
  }

  // The best token among `peaks`; the others have logit 0.
  int32_t token(bool semantic, const Peaks& peaks, const DrawRow& row) {
    const std::vector<float> logits = logits_of(semantic, peaks);
    const Tensor there = put(logits, {1, std::ssize(logits)}), settings = put_settings({&row, 1}),
                 frame = put(std::vector<int32_t>(1 + kTwoCodebooks, -1), {1, 1 + kTwoCodebooks});
    draw_tokens(ctx(), there, {settings, {}}, head_of(semantic), frame);
    frame_ = get_ints(frame);
    EXPECT_EQ(frame_[2], -1) << "not this draw's";
    return frame_[0];
  }
  int32_t code() const { return frame_[1]; }

  std::vector<int32_t> frame_;
};

TEST_P(DrawTest, EveryRowOfTheHeadIsItsToken) {
  for (const int32_t token : {3, 10, 12, 17}) {
    EXPECT_EQ(this->token(true, {{token, 9.0f}}, greedy()), token);
    EXPECT_EQ(this->token(false, {{token, 9.0f}}, greedy()), token);
  }
  EXPECT_EQ(token(false, {{0, 9.0f}}, greedy()), 0);
  EXPECT_EQ(token(false, {{19, 9.0f}}, greedy()), 19);
}

TEST_P(DrawTest, TextTokensAndTokensBeyondTheCodebookHaveClampedCodes) {
  EXPECT_EQ(token(false, {{5, 9.0f}}, greedy()), 5);
  EXPECT_EQ(code(), 0);
  token(false, {{12, 9.0f}}, greedy());
  EXPECT_EQ(code(), 2);
  token(false, {{17, 9.0f}}, greedy());
  EXPECT_EQ(code(), 5);
}

TEST_P(DrawTest, RestrictedRowsNeverDrawText) {
  for (const bool semantic : {false, true}) {
    DrawRow row = greedy();
    row.restricted = 1;
    EXPECT_EQ(token(semantic, {{5, 9.0f}, {14, 8.0f}, {18, 9.0f}}, row), 14);
    EXPECT_EQ(token(semantic, {{5, 9.0f}, {3, 8.0f}}, row), 3);
    EXPECT_EQ(code(), 0);
  }
}

TEST_P(DrawTest, PenalisesTokenIdsWhereverTheyStandInTheHead) {
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
TEST_P(DrawTest, ARecentSemanticTokenIsRedrawn) {
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
TEST_P(DrawTest, NoiseDependsOnTheDrawIndex) {
  std::vector<float> logits = random_values(20, 1, 0.1f);
  const Tensor there = put(logits, {1, 20}), frame_there = put(std::vector<int32_t>(3), {1, 3});
  const auto sampled = [&](const SampleRow& row) {
    int32_t token = -1;
    sample(host_ctx(), view_of(logits, {1, 20}), {&row, 1}, {&token, 1});
    return token;
  };
  int anew = 0;
  for (uint32_t frame = 0; frame < 50; ++frame) {
    DrawRow row{.seed = 9, .frame = frame, .temperature = 0.7f, .top_p = 0.95f};
    set_recent(row, {10, 11, 12, 13});
    const Tensor settings = put_settings({&row, 1});
    SampleRow expected{.temperature = 0.7f, .top_p = 0.95f, .seed = 9, .frame = frame, .codebook = 0};
    int32_t want = sampled(expected);
    if (want >= 10 && want <= 13) {
      expected.temperature = 1.0f, expected.top_p = 0.9f, expected.codebook = 1000;
      want = sampled(expected);
      ++anew;
    }
    draw_tokens(ctx(), there, {settings, {}}, head_of(false), frame_there);
    EXPECT_EQ(get_ints(frame_there)[0], want) << frame;

    expected = {.temperature = 0.7f, .top_p = 0.95f, .seed = 9, .frame = frame, .codebook = 1};
    draw_codes(ctx(), there, {settings, {}}, 1, frame_there);
    EXPECT_EQ(get_ints(frame_there)[2], sampled(expected)) << frame;
  }
  EXPECT_GT(anew, 2);
  EXPECT_LT(anew, 48);
}

TEST_P(DrawTest, ResidualCodesArePenalisedByTheirOwnWindow) {
  std::vector<int32_t> codes(kTwoCodebooks * kWindow, 4);
  std::fill(codes.begin() + kWindow, codes.end(), 2);
  codes[kWindow] = 6, codes[kWindow + 1] = -1;  // outside the codes of the logits: ignored
  DrawRow row = greedy();
  row.repetition_penalty = 2;
  row.penalised_codes = kWindow;
  // 9 / 2 < 6, and code 4 is codebook 0's affair.
  const Tensor logits = put(std::vector<float>{0, 0, 9, 5, 6, 0}, {1, 6}),
               codes_there = put(codes, {1, kTwoCodebooks, kWindow});
  const auto draw = [&] {
    const Tensor settings = put_settings({&row, 1}), frame = put(std::vector<int32_t>{7, 8, 9}, {1, 3});
    draw_codes(ctx(), logits, {settings, codes_there}, 1, frame);
    return get_ints(frame);
  };
  EXPECT_THAT(draw(), ElementsAre(7, 8, 4));
  row.penalised_codes = 2;
  EXPECT_THAT(draw(), ElementsAre(7, 8, 2)) << "the first two of the window are no codes";
}

TEST_P(DrawTest, ARowIsTheSameAloneAndInABatch) {
  constexpr size_t kRows = 17;
  std::vector<int32_t> window;
  for (size_t i = 0; i < kRows * kTwoCodebooks * kWindow; ++i)
    window.push_back(static_cast<int32_t>(i * 7 % 20));
  std::vector<DrawRow> rows(kRows);
  for (size_t i = 0; i < kRows; ++i) {
    rows[i] = {.seed = i / 3, .frame = static_cast<uint32_t>(i), .restricted = static_cast<int32_t>(i % 2)};
    penalise(rows[i], {static_cast<int32_t>(i), 12});
    set_recent(rows[i], {10, 11, static_cast<int32_t>(i)});
    rows[i].penalised_codes = static_cast<int32_t>(i % kWindow);
  }
  const Tensor logits = put(random_values(kRows * 20, 3), {kRows, 20}),
               codes = put(window, {kRows, kTwoCodebooks, kWindow}), settings = put_settings(rows);
  const auto drawn = [&](int64_t begin, int64_t end) {
    const Tensor frames = put(std::vector<int32_t>(static_cast<size_t>(3 * (end - begin))), {end - begin, 3});
    const TensorView some = logits.view().slice(begin, end);
    const DrawTable table{settings.view().slice(begin, end), codes.view().slice(begin, end)};
    draw_tokens(ctx(), some, table, head_of(false), frames);
    draw_codes(ctx(), some, table, 1, frames);
    return get_ints(frames);
  };
  const std::vector<int32_t> together = drawn(0, kRows);
  for (int64_t i = 0; i < static_cast<int64_t>(kRows); ++i)
    EXPECT_EQ(drawn(i, i + 1), std::vector<int32_t>(together.begin() + 3 * i, together.begin() + 3 * i + 3))
        << i;
}

TEST_P(DrawTest, MismatchedTablesAndHeadsAreOurFault) {
  const DrawRow two_rows[] = {greedy(), greedy()};
  const Tensor logits = put(std::vector<float>(20), {1, 20}), frame = put(std::vector<int32_t>(3), {1, 3}),
               settings = put_settings({two_rows, 1}), too_many = put_settings(two_rows);
  EXPECT_NO_THROW(draw_codes(ctx(), logits, {settings, {}}, 1, frame));
  EXPECT_THROW(draw_codes(ctx(), logits, {settings, {}}, 0, frame), Error);
  EXPECT_THROW(draw_codes(ctx(), logits, {settings, {}}, 2, frame), Error);
  EXPECT_THROW(draw_tokens(ctx(), logits, {settings, {}}, head_of(true), frame), Error);
  EXPECT_THROW(draw_tokens(ctx(), logits, {too_many, {}}, head_of(false), frame), Error);
}

INSTANTIATE_TEST_SUITE_P(Machine, DrawTest, testing::ValuesIn(every_machine()), name_of_machine);

class DrawOnCpus : public DrawTest {};

TEST_P(DrawOnCpus, BadLogitsAndSettingsAreErrors) {
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
  row = greedy(), row.penalised_codes = 1;  // of none
  const Tensor logits = put(std::vector<float>(20), {1, 20}), frame = put(std::vector<int32_t>(3), {1, 3}),
               settings = put_settings({&row, 1});
  EXPECT_THROW(draw_codes(ctx(), logits, {settings, {}}, 1, frame), Error);
}

INSTANTIATE_TEST_SUITE_P(Cpu, DrawOnCpus, testing::ValuesIn(every_cpu()), name_of_machine);

}  // namespace
}  // namespace shoal::ops
