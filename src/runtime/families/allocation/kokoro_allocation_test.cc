// Failing allocations in a Kokoro engine: every request ends, with its own sound or with an error that names
// the reason.
#include <gtest/gtest.h>
#include <random>

#include "runtime/families/allocation/failing_memory_testing.h"
#include "runtime/families/allocation/watchdog_testing.h"
#include "runtime/families/kokoro/kokoro_pipeline_testing.h"

namespace shoal::runtime {
namespace {

using shoal::testing::allocations_counted;
using shoal::testing::allocations_failed;
using shoal::testing::fail_allocations;
using shoal::testing::fail_no_allocations;
using shoal::testing::Spared;
using shoal::testing::Watchdog;

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kSamples = 40;
#else
constexpr int kSamples = 400;
#endif

EngineConfig config() {
  EngineConfig made = testing::small_engine();
  made.max_batch_size = 3;
  return made;
}

// Several chunks, a pause before the first and between lines, a whole file.
std::vector<SpeechRequest> requests() {
  std::vector<SpeechRequest> made(3);
  made[0].phonemes = "aaaa aaaa, abab aaaa aaaa aɡaa aaaa aaaa.\n[pause:0.1s]ab.";
  made[1].phonemes = "[pause:0.1s]ab ba. [pause:0.2s].[pause:0.1s]ɡa";
  made[2].phonemes = made[0].phonemes;
  made[2].delivery = Delivery::whole;
  for (SpeechRequest& request : made) request.seed = 5;
  return made;
}

TEST(RefusedMemoryOfKokoro, EndsRequestsButLosesNothingOfThem) {
  const Spared spared;
  KokoroPipeline pipeline(config(), testing::small_model);
  const std::vector<SpeechRequest> asked = requests();
  std::vector<std::vector<float>> alone;
  for (const SpeechRequest& request : asked) alone.push_back(pipeline.submit(request).read_all());
  fail_no_allocations();
  for (const SpeechRequest& request : asked) pipeline.submit(request).read_all();
  const int64_t all = allocations_counted();
  ASSERT_GT(all, 100);

  const auto seed = static_cast<uint32_t>(std::random_device()());
  std::mt19937_64 random(seed);
  std::uniform_int_distribution<int64_t> any(1, all);
  int answered = 0, failed = 0;
  int64_t failures = 0;
  for (int round = 0; round < kSamples; ++round) {
    const int64_t first = any(random), count = round % 4 == 0 ? 3 : 1;
    SCOPED_TRACE(::testing::Message()
                 << "seed " << seed << ", allocations " << first << " and on, " << count);
    const Watchdog watchdog("RefusedMemoryOfKokoro");
    fail_allocations(first, count);
    std::vector<Speech> speeches;
    for (const SpeechRequest& request : asked) speeches.push_back(pipeline.submit(request));
    for (size_t i = 0; i < speeches.size(); ++i) {
      try {
        EXPECT_TRUE(speeches[i].read_all() == alone[i]) << "request " << i << " is not whole";
        ++answered;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::resource_exhausted) << error.message();
        ++failed;
      }
    }
    failures += allocations_failed();
    fail_no_allocations();
    pipeline.wait_until_empty(0);
  }
  EXPECT_GT(failures, kSamples / 2);
  EXPECT_GT(failed, 0);
  EXPECT_GT(answered, 2 * failed);
  for (size_t i = 0; i < asked.size(); ++i) EXPECT_TRUE(pipeline.submit(asked[i]).read_all() == alone[i]);
}

}  // namespace
}  // namespace shoal::runtime
