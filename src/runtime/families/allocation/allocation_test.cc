// Failing allocations: a single one, or all from some point on. Every request ends, with its own answer or
// with an error that names the reason; when memory is available again, everything works as before.
#include <gtest/gtest.h>
#include <iostream>
#include <thread>

#include "runtime/engine/engine_testing.h"
#include "runtime/engine/push_reader.h"
#include "runtime/families/allocation/failing_memory_testing.h"
#include "runtime/families/allocation/watchdog_testing.h"
#include "runtime/families/language/pipeline.h"

namespace shoal::runtime {
namespace {

using shoal::testing::allocations_counted;
using shoal::testing::allocations_failed;
using shoal::testing::fail_allocations;
using shoal::testing::fail_no_allocations;
using shoal::testing::NotSpared;
using shoal::testing::Spared;
using shoal::testing::Watchdog;
using testing::Answer;
using testing::answer_of;

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kSamples = 25;
#else
constexpr int kSamples = 250;
#endif
constexpr int kFirstOnes = 15;  // tried one after another, before samples of the rest

// A request of every kind. `round` makes its clip one that no cache knows, though it sounds the same.
std::vector<SpeechRequest> requests(int round) {
  std::mt19937_64 random(5);
  const ReferenceCodes voice = testing::random_voice(random, 12);
  std::vector<SpeechRequest> made;
  for (int i = 0; i < 4; ++i) {
    made.push_back(testing::random_request(random, {voice}, 5));
    made.back().text = "A fish.";
    made.back().encoded_references.clear();
  }
  made[0].encoded_references = made[3].encoded_references = {voice};
  made[1].text = "One fish swims under a cold moon, slowly. Another one follows it. They are small.";
  made[1].chunk_length = 50;
  made[1].speed = 0.5;
  made[1].volume = 2;
  made[2].references = {{.audio = testing::noise_wav(0.3, 1) + std::to_string(round), .text = "a clip"}};
  return made;
}

EngineConfig config() {
  EngineConfig made = testing::tiny_config();
  made.kv_page_size = 8;
  made.max_batch_size = 3;
  made.codec_threads = 1;
  return made;
}

class RefusedMemory : public ::testing::Test {
 protected:
  RefusedMemory() {
    for (const SpeechRequest& request : requests(next_round_++)) {
      Speech speech = pipeline_->submit(request);
      alone_.push_back(answer_of(speech));
    }
  }
  ~RefusedMemory() override { fail_no_allocations(); }

  // Allocations [n, n + count) of the engine's threads fail, with `submitting` also those within submit().
  void expect_requests_survive(int64_t n, int64_t count, bool submitting) {
    SCOPED_TRACE(::testing::Message() << "allocations " << n << " and on, " << count);
    const Watchdog watchdog(::testing::UnitTest::GetInstance()->current_test_info()->name());
    const std::vector<SpeechRequest> asked = requests(next_round_++);
    std::vector<std::optional<Speech>> speeches(asked.size());
    std::vector<std::optional<ErrorCode>> refused(asked.size());
    fail_allocations(n, count);
    for (size_t i = 0; i < asked.size(); ++i) {
      try {
        speeches[i] = submit(asked[i], submitting);
      } catch (const Error& error) {
        refused[i] = error.code();
      }
    }
    for (size_t i = 0; i < asked.size(); ++i) expect_answer_or_error(speeches[i], refused[i], i);
    failures_ += allocations_failed();
    fail_no_allocations();
    pipeline_->wait_until_empty(0);
    EXPECT_NO_THROW(pipeline_->check_idle());
    const Statistics s = pipeline_->statistics();
    EXPECT_EQ(s.submitted, s.completed + s.failed + s.refused);
  }

  void expect_everything_as_before() {
    const std::vector<SpeechRequest> asked = requests(next_round_++);
    for (size_t i = 0; i < asked.size(); ++i) {
      Speech speech = pipeline_->submit(asked[i]);
      EXPECT_EQ(answer_of(speech), alone_[i]);
    }
  }

  // How many allocations a round takes.
  int64_t allocations_of_a_round(bool submitting) {
    fail_no_allocations();
    for (const SpeechRequest& request : requests(next_round_++)) submit(request, submitting).read_all();
    return allocations_counted();
  }

  const Spared spared_;  // the test's own allocations
  std::unique_ptr<Pipeline> pipeline_ = std::make_unique<Pipeline>(config());
  std::vector<Answer> alone_;
  int next_round_ = 0;
  int64_t failures_ = 0;
  int answered_ = 0, failed_ = 0;

 private:
  Speech submit(const SpeechRequest& request, bool submitting) {
    std::optional<NotSpared> not_spared;
    if (submitting) not_spared.emplace();
    return pipeline_->submit(request);
  }

  void expect_answer_or_error(std::optional<Speech>& speech, std::optional<ErrorCode> code, size_t i) {
    if (speech) {
      try {
        EXPECT_EQ(answer_of(*speech), alone_[i]) << "request " << i;
        ++answered_;
        return;
      } catch (const Error& error) {
        code = error.code();
      }
    }
    ++failed_;
    EXPECT_EQ(code, ErrorCode::resource_exhausted) << name_of(*code);
  }
};

TEST_F(RefusedMemory, OnceAtAnyAllocation) {
  const auto seed = static_cast<uint32_t>(std::random_device()());
  std::mt19937_64 random(seed);
  for (const bool submitting : {false, true}) {
    const int64_t all = allocations_of_a_round(submitting);
    ASSERT_GT(all, 100);
    std::uniform_int_distribution<int64_t> any(1, all);
    for (int i = 1; i <= kFirstOnes + kSamples; ++i)
      expect_requests_survive(i <= kFirstOnes ? i : any(random), 1, submitting);
    expect_everything_as_before();
    std::cout << "seed " << seed << ": " << all << " allocations, " << failures_ << " of them refused, "
              << answered_ << " requests answered, " << failed_ << " failed" << std::endl;
  }
  EXPECT_GT(failures_, kSamples);
  EXPECT_GT(answered_, 2 * failed_);
}

// Workspaces and queues that have yet to grow.
TEST_F(RefusedMemory, InTheFirstRequestsOfAnEngine) {
  std::mt19937_64 random(8);
  pipeline_ = std::make_unique<Pipeline>(config());
  std::uniform_int_distribution<int64_t> any(1, allocations_of_a_round(false));
  for (int i = 0; i < kSamples / 4; ++i) {
    pipeline_ = std::make_unique<Pipeline>(config());
    expect_requests_survive(any(random), i % 2 == 0 ? 1 : 5, false);
    if (i % 4 == 0) expect_everything_as_before();
  }
  EXPECT_GT(failures_, 0);
}

TEST_F(RefusedMemory, InCallbacksAndBatches) {
  EngineConfig made = config();
  made.max_queue = 2;
  Engine engine(made);
  engine.start();
  const std::vector<SpeechRequest> asked = requests(0);
  for (int64_t n = 1; n < 2 * kSamples; n += 7) {
    const Watchdog watchdog("InCallbacksAndBatches");
    std::atomic<int> ends{0};
    fail_allocations(n, n % 3 == 0 ? 4 : 1);
    std::vector<BatchResult> results;
    try {
      const Speech pushed =
          engine.submit(asked[0], {.on_audio = {}, .on_end = [&](const auto&, const Error*) { ++ends; }});
      results = engine.generate_batch(asked);
      while (!pushed.ended()) std::this_thread::yield();
      while (ends == 0) std::this_thread::yield();
      EXPECT_EQ(ends, 1);
    } catch (const std::bad_alloc&) {  // of the batch's own thread, before it had begun
    }
    fail_no_allocations();
    for (size_t i = 0; i < results.size(); ++i) {
      if (results[i].error) {
        EXPECT_EQ(results[i].error->code(), ErrorCode::resource_exhausted) << results[i].error->message();
      } else {
        EXPECT_EQ(results[i].samples, alone_[i].sound);
      }
    }
  }
  engine.stop();
}

TEST_F(RefusedMemory, Permanently) {
  std::mt19937_64 random(9);
  for (const bool submitting : {false, true}) {
    std::uniform_int_distribution<int64_t> any(1, allocations_of_a_round(submitting));
    for (int i = 0; i < kSamples / 4; ++i)
      expect_requests_survive(any(random), std::numeric_limits<int64_t>::max(), submitting);
    expect_everything_as_before();
  }
  EXPECT_GT(failed_, 0);
}

}  // namespace
}  // namespace shoal::runtime
