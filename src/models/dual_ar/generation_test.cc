#include "models/dual_ar/generation.h"

#include <cmath>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"

namespace shoal::dual_ar {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;
using Frame = std::vector<int32_t>;

// Two codebooks; tokens 100..131 are semantic, 50 ends.
Config small_config(Family family) {
  Config config;
  config.family = family;
  config.vocab_size = 200;
  config.num_codebooks = 2;
  config.codebook_size = 32;
  config.max_positions = 64;
  config.semantic_begin = 100;
  config.semantic_end = 131;
  config.im_end = 50;
  return config;
}

Frame frame(int32_t code) { return {100 + code, code, (code + 7) % 32}; }
const Frame kEnd = {50, 0, 3};

Utterance utterance(Family family, const Sampling& sampling = {}, int64_t prompt = 5, int64_t frames = 0) {
  return {small_config(family), sampling, prompt, frames};
}

ErrorCode error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::internal;
}

TEST(Utterance, TheFrameOfThePrefillIsSampledWithoutPenalty) {
  const FrameRequest request = utterance(Family::s1).next_request();
  EXPECT_EQ(request.frame, 0u);
  EXPECT_FLOAT_EQ(request.repetition_penalty, 1.0f);
  EXPECT_THAT(request.penalised_tokens, IsEmpty());
  EXPECT_THAT(request.penalised_codes, IsEmpty());
}

// Loop iteration 0: 16 columns of zeros, and the prefill frame is never among them.
TEST(Utterance, FirstLoopFrameIsPenalisedForZerosOnly) {
  Utterance u = utterance(Family::s1);
  u.accept(frame(9));
  const FrameRequest request = u.next_request();
  EXPECT_EQ(request.frame, 1u);
  EXPECT_FLOAT_EQ(request.repetition_penalty, 1.1f);
  EXPECT_THAT(request.penalised_tokens, ElementsAre(0, 0, 0));
  EXPECT_EQ(request.penalised_codes.size(), 2u * 16u);
  EXPECT_THAT(request.penalised_codes, Each(0));
}

// 0 < i < 16: the semantic token competes only with loop frame 0, and with its codes read as token ids.
TEST(Utterance, EarlyLoopFramesPenaliseLoopFrameZero) {
  Utterance u = utterance(Family::s1);
  for (int32_t code : {9, 1, 2}) u.accept(frame(code));  // prefill frame, loop frames 0 and 1
  const FrameRequest request = u.next_request();
  EXPECT_THAT(request.penalised_tokens, ElementsAre(101, 1, 8));
  Frame codebook1(16, 0);
  codebook1[0] = 8;
  codebook1[1] = 9;
  EXPECT_THAT(request.penalised_codes.subspan(16), ElementsAreArray(codebook1));
}

// i >= 16: the window slides, and its oldest frame is i - 16.
TEST(Utterance, LateLoopFramesPenaliseTheFrameSixteenBack) {
  Utterance u = utterance(Family::s1);
  u.accept(frame(31));
  for (int32_t code = 0; code < 16; ++code) u.accept(frame(code));
  EXPECT_THAT(u.next_request().penalised_tokens, ElementsAre(100, 0, 7)) << "i = 16: loop frame 0";
  u.accept(frame(16));
  EXPECT_THAT(u.next_request().penalised_tokens, ElementsAre(101, 1, 8)) << "i = 17: loop frame 1";
}

// The reference's own bookkeeping, written out: a zeroed buffer and slices of it.
TEST(Utterance, WindowsEqualTheReferenceBufferForLongRandomStreams) {
  std::mt19937 random(7);
  Utterance u = utterance(Family::s1);
  std::vector<Frame> loop;  // the prefill frame is not entered
  u.accept(frame(3));
  while (!u.finished()) {
    std::vector<Frame> buffer = loop;
    buffer.resize(loop.size() + 16, Frame(3, 0));
    const size_t i = loop.size(), begin = i < 16 ? 0 : i - 16;
    const FrameRequest request = u.next_request();
    EXPECT_THAT(request.penalised_tokens, ElementsAreArray(buffer[begin]));
    for (size_t row = 1; row <= 2; ++row) {
      Frame expected;
      for (size_t column = begin; column < begin + 16; ++column) expected.push_back(buffer[column][row]);
      const auto codes = request.penalised_codes.subspan((row - 1) * 16, 16);
      EXPECT_THAT(Frame(codes.begin(), codes.end()), ::testing::UnorderedElementsAreArray(expected));
    }
    loop.push_back(frame(static_cast<int32_t>(random() % 32)));
    u.accept(loop.back());
  }
  EXPECT_EQ(u.frame_count(), 59);  // 64 positions, 5 of them prompt
}

TEST(Utterance, SaneWindowPenalisesSemanticTokensOfWrittenFramesOnly) {
  Sampling sampling;
  sampling.quirks.penalise_window_semantics = true;
  Utterance u = utterance(Family::s1, sampling);
  u.accept(frame(9));
  EXPECT_THAT(u.next_request().penalised_tokens, IsEmpty());
  u.accept(frame(1));
  u.accept(frame(2));
  EXPECT_THAT(u.next_request().penalised_tokens, ElementsAre(101, 102));
}

TEST(Utterance, S2RemembersTheLastTenLoopTokensAndNeverPenalises) {
  Utterance u = utterance(Family::s2, Sampling::defaults(Family::s2));
  EXPECT_THAT(u.next_request().recent_tokens, IsEmpty());
  u.accept(frame(30));  // prefill frame: not remembered
  EXPECT_THAT(u.next_request().recent_tokens, Each(0));
  for (int32_t code = 0; code < 12; ++code) u.accept(frame(code));
  const FrameRequest request = u.next_request();
  EXPECT_THAT(request.recent_tokens,
              ::testing::UnorderedElementsAre(102, 103, 104, 105, 106, 107, 108, 109, 110, 111));
  EXPECT_TRUE(request.semantic_only);
  EXPECT_EQ(request.top_k, 30);
  EXPECT_FLOAT_EQ(request.repetition_penalty, 1.0f);
  EXPECT_THAT(request.penalised_codes, IsEmpty());
}

// How a stream of frames ends: the reason, how many frames are taken, and how many of them are speech.
struct Ending {
  const char* name;
  int64_t max_new_tokens;
  std::vector<Frame> frames;
  Quirks quirks;
  FinishReason reason;
  int64_t speech;
};

class UtteranceEnding : public ::testing::TestWithParam<Ending> {};

TEST_P(UtteranceEnding, FollowsTheRules) {
  const Ending& ending = GetParam();
  Sampling sampling;
  sampling.quirks = ending.quirks;
  Utterance u = utterance(Family::s1, sampling, 5, ending.max_new_tokens);
  for (size_t i = 0; i < ending.frames.size(); ++i) {
    EXPECT_EQ(u.speech_frames(), static_cast<int64_t>(i)) << "every frame that was followed is speech";
    EXPECT_EQ(u.accept(ending.frames[i]), i + 1 == ending.frames.size());
    EXPECT_THAT(u.last_frame(), ElementsAreArray(ending.frames[i]));
    EXPECT_EQ(u.next_position(), 5 + static_cast<int64_t>(i));
  }
  ASSERT_TRUE(u.finished());
  EXPECT_EQ(*u.finish_reason(), ending.reason);
  EXPECT_EQ(u.speech_frames(), ending.speech);
  EXPECT_EQ(u.frame_count(), static_cast<int64_t>(ending.frames.size()));
}

INSTANTIATE_TEST_SUITE_P(
    Rules, UtteranceEnding,
    ::testing::Values(
        Ending{"EndTokenIsDropped", 9, {frame(1), frame(2), kEnd}, {}, FinishReason::end_token, 2},
        Ending{"LastFrameIsDroppedEvenWithoutEnd", 2, {frame(1), frame(2)}, {}, FinishReason::length, 1},
        Ending{"LastFrameIsKeptOnRequest",
               2,
               {frame(1), frame(2)},
               {.keep_last_frame_without_end = true},
               FinishReason::length,
               2},
        Ending{"EndTokenIsDroppedEvenWhenLastFramesAreKept",
               2,
               {frame(1), kEnd},
               {.keep_last_frame_without_end = true},
               FinishReason::end_token,
               1},
        Ending{"EndInFrameZeroIsNotChecked", 9, {kEnd, frame(2), kEnd}, {}, FinishReason::end_token, 2},
        Ending{"EndInFrameZeroOnRequest",
               9,
               {kEnd},
               {.check_first_frame_end = true},
               FinishReason::end_token,
               0},
        Ending{"OneFrame", 1, {frame(1)}, {}, FinishReason::length, 0},
        Ending{"OneFrameThatIsTheEnd", 1, {kEnd}, {}, FinishReason::length, 0},
        Ending{
            "OneFrameKept", 1, {frame(1)}, {.keep_last_frame_without_end = true}, FinishReason::length, 1}),
    [](const auto& suite) { return suite.param.name; });

TEST(Utterance, LengthIsBoundedByThePositions) {
  EXPECT_EQ(utterance(Family::s1, {}, 5, 0).max_frames(), 59);
  EXPECT_EQ(utterance(Family::s1, {}, 5, 12).max_frames(), 12);
  EXPECT_EQ(utterance(Family::s1, {}, 60, 12).max_frames(), 4);
  EXPECT_EQ(utterance(Family::s1, {}, 63, 0).max_frames(), 1);
  EXPECT_EQ(error_of([] { utterance(Family::s1, {}, 64, 0); }), ErrorCode::too_large);
  EXPECT_EQ(error_of([] { utterance(Family::s1, {}, 0, 0); }), ErrorCode::invalid_argument);
  EXPECT_EQ(error_of([] { utterance(Family::s1, {}, 5, -1); }), ErrorCode::invalid_argument);
}

TEST(Utterance, PromptLimitIsTheOfficialOneForLongModels) {
  Config config = Config::s1_mini();
  EXPECT_EQ(prompt_limit(config), 6144);
  config.max_positions = 512;
  EXPECT_EQ(prompt_limit(config), 256);
}

TEST(CheckColumns, NamesTheBadId) {
  const Config config = small_config(Family::s1);
  const auto message = [&](const Frame& columns) -> std::string {
    try {
      check_columns(config, columns);
    } catch (const Error& error) {
      return error.message();
    }
    return "";
  };
  EXPECT_EQ(message({199, 0, 31, 0, 31, 0}), "");
  EXPECT_EQ(message({199, 0, 31, 0, 32, 0}), "prompt column 1, row 1 must be in 0..31, got 32");
  EXPECT_EQ(message({199, -1, 0}), "prompt column 0, row 1 must be in 0..31, got -1");
  EXPECT_EQ(message({200, 0, 0}), "prompt column 0, row 0 must be in 0..199, got 200");
  EXPECT_EQ(message({1, 0, 0, 4}), "prompt must be columns of 3 ids, got 4 ids");
}

TEST(Sampling, RejectsValuesOutsideTheirRanges) {
  const auto refused = [](auto change) {
    Sampling sampling;
    change(sampling);
    return error_of([&] { check_sampling(sampling); }) == ErrorCode::invalid_argument;
  };
  EXPECT_TRUE(refused([](Sampling& s) { s.temperature = -0.1f; }));
  EXPECT_TRUE(refused([](Sampling& s) { s.temperature = std::nanf(""); }));
  EXPECT_TRUE(refused([](Sampling& s) { s.top_p = 1.01f; }));
  EXPECT_TRUE(refused([](Sampling& s) { s.repetition_penalty = 0; }));
  EXPECT_TRUE(refused([](Sampling& s) { s.repetition_penalty = 2.5f; }));
  EXPECT_TRUE(refused([](Sampling& s) { s.top_k = -1; }));
  EXPECT_NO_THROW(check_sampling(Sampling::defaults(Family::s1)));
  EXPECT_NO_THROW(check_sampling(Sampling::defaults(Family::s2)));
}

}  // namespace
}  // namespace shoal::dual_ar
