// Codes that a caller brings become sound beside everything else.
#include <gtest/gtest.h>
#include <random>
#include <thread>

#include "runtime/engine/engine_testing.h"
#include "runtime/families/language/pipeline.h"
#include "tensor/device_memory.h"

namespace shoal::runtime {
namespace {

std::vector<int32_t> drawn_codes(uint64_t seed, int frames) {
  std::mt19937_64 random(seed);
  return testing::random_voice(random, frames).codes;
}

struct Answers {
  std::vector<int32_t> codes;
  std::vector<float> sound;
  bool operator==(const Answers&) const = default;
};

// Caller `i` brings a clip and codes of its own.
Answers answers_of(Pipeline& pipeline, int i) {
  return {.codes = pipeline.encode(testing::noise_wav(1, static_cast<uint32_t>(i))).codes,
          .sound = pipeline.decode(drawn_codes(static_cast<uint64_t>(i), 5 + 9 * i))};
}

// On a GPU, where it would stop all other work. (A CPU's memory is not refused here.)
TEST(ClipWork, EvenTheFirstCallsTakeNoMemoryOfTheDevice) {
  std::vector<Answers> refused, usual;
  for (std::vector<Answers>* const answers : {&refused, &usual}) {
    Pipeline pipeline(testing::tiny_config());
    device_memory::fail_allocation_after(answers == &refused ? 0 : -1);
    for (int i = 0; i < 5; ++i) EXPECT_NO_THROW(answers->push_back(answers_of(pipeline, i)));
    device_memory::fail_allocation_after(-1);
  }
  EXPECT_TRUE(refused == usual);
}

TEST(ClipWork, CallersWhoDecodeAndEncodeAtATimeGetWhatTheyGetAlone) {
  constexpr int kCallers = 4;
  std::vector<Answers> alone, together(kCallers);
  {
    Pipeline pipeline(testing::tiny_config());
    for (int i = 0; i < kCallers; ++i) alone.push_back(answers_of(pipeline, i));
  }
  Pipeline pipeline(testing::tiny_config());  // which has encoded none of these clips
  std::vector<std::thread> callers;
  for (int i = 0; i < kCallers; ++i)
    callers.emplace_back([&, i] { together[static_cast<size_t>(i)] = answers_of(pipeline, i); });
  for (std::thread& caller : callers) caller.join();
  EXPECT_TRUE(together == alone);
}

TEST(ClipWork, LongCodesGiveTheSoundOfOnePass) {
  Pipeline pipeline(testing::tiny_config());
  const std::vector<int32_t> codes = drawn_codes(3, 2 * ClipDecoder::kFramesAtATime + 5);
  ThreadTeam team(1);
  ops::Execution execution(ops::test_device(), team);
  EXPECT_TRUE(pipeline.decode(codes) == pipeline.model().codec().decode(execution.context(), codes));
}

TEST(ClipWork, BadCodesAreRefusedAndHarmNobody) {
  Pipeline pipeline(testing::tiny_config());
  const std::vector<int32_t> codes = drawn_codes(1, 6);
  const std::vector<float> sound = pipeline.decode(codes);
  std::vector<int32_t> negative = codes, cut = codes;
  negative[13] = -1;
  cut.pop_back();
  for (const auto& bad : {negative, cut})
    EXPECT_EQ(testing::code_of([&] { pipeline.decode(bad); }), ErrorCode::invalid_argument);
  EXPECT_EQ(pipeline.decode(codes), sound);
}

}  // namespace
}  // namespace shoal::runtime
