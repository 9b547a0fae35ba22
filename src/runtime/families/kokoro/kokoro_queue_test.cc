// Order and waiting of requests: turns, places, deadlines, a full queue, the end.
#include <algorithm>
#include <atomic>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <thread>

#include "runtime/families/kokoro/kokoro_pipeline_testing.h"

namespace shoal::runtime {
namespace {

using ops::testing_on_cpu;
using testing::error_of;
using ::testing::HasSubstr;
using testing::HeldCall;
using testing::Ids;
using testing::KokoroPipelineTest;

TEST_F(KokoroPipelineTest, ACancelledRequestCostsAtMostItsCurrentBatch) {
  HeldCall held(watch_);
  Speech speech = start().submit(say("aaaa aaaa, aaaa aaaa aaaa aaaa aaaa aaaa."));
  ASSERT_TRUE(held.has_begun());
  speech.cancel();
  held.go_on();
  EXPECT_EQ(error_of([&] { speech.read_all(); }).code(), ErrorCode::cancelled);
  pipeline_->wait_until_empty(0);
  EXPECT_EQ(watch_.batches.size(), 1u);
}

TEST_F(KokoroPipelineTest, RequestsOfOneClientAreSpokenInTheirOrder) {
  HeldCall held(watch_);
  EngineConfig config = small();
  config.max_batch_size = 1;
  start(config);
  std::vector<Speech> speeches;
  speeches.push_back(pipeline_->submit(say("ɡ.")));
  ASSERT_TRUE(held.has_begun());
  for (int length = 1; length <= 6; ++length)
    speeches.push_back(pipeline_->submit(say(std::string(length, 'a'))));
  std::this_thread::sleep_for(std::chrono::milliseconds(5));  // turns are as long as batches
  held.go_on();
  for (Speech& speech : speeches) EXPECT_FALSE(speech.read_all().empty());
  std::vector<size_t> lengths;
  for (const auto& batch : watch_.batches) lengths.push_back(batch.at(0).size());
  EXPECT_TRUE(std::ranges::is_sorted(lengths.begin() + 1, lengths.end()))
      << ::testing::PrintToString(lengths);
}

TEST_F(KokoroPipelineTest, SpeaksAtMostAsManyRequestsAsThereAreStreams) {
  EngineConfig config = small();
  config.max_streams = 1;
  start(config);
  std::vector<Speech> speeches;
  for (const char* letter : {"a", "b", "ɡ"}) {
    std::string phonemes;
    for (int i = 0; i < 60; ++i) phonemes += letter + std::string(i % 6 == 5 ? ". " : " ");
    speeches.push_back(pipeline_->submit(say(phonemes)));
  }
  for (Speech& speech : speeches) EXPECT_FALSE(speech.read_all().empty());
  std::vector<int32_t> turns;  // who was spoken, one after the other
  for (const auto& batch : watch_.batches)
    for (const Ids& ids : batch)
      if (turns.empty() || turns.back() != ids.at(1)) turns.push_back(ids[1]);
  EXPECT_EQ(turns.size(), 3u) << ::testing::PrintToString(turns);
}

TEST_F(KokoroPipelineTest, TheDeadlineStartsWhenTheRequestIsQueued) {
  HeldCall held(watch_);
  EngineConfig config = small();
  config.max_queue = 1;
  start(config);
  Speech spoken = pipeline_->submit(say("aaaa."));
  ASSERT_TRUE(held.has_begun());
  Speech queued = pipeline_->submit(say("aaaa."));
  std::atomic<bool> asks{false};
  double total_s = 0;
  std::jthread waiting([&] {
    asks = true;
    Speech late = pipeline_->submit(say("aaaa."), {.wait = true, .cancel = {}});
    late.read_all();
    total_s = late.summary().total_s;
  });
  while (!asks) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const auto released = std::chrono::steady_clock::now();
  held.go_on();
  waiting.join();
  EXPECT_LE(total_s, std::chrono::duration<double>(std::chrono::steady_clock::now() - released).count());
}

TEST_F(KokoroPipelineTest, AFullQueueAndATimeoutAreReportedLikeBatchingServers) {
  HeldCall held(watch_);
  EngineConfig config = small();
  config.max_queue = 1;
  start(config);
  Speech spoken = pipeline_->submit(say("aaaa."));
  ASSERT_TRUE(held.has_begun());
  SpeechRequest request = say("aaaa.");
  request.timeout = std::chrono::milliseconds(1);
  Speech late = pipeline_->submit(request);
  const Error full = error_of([&] { pipeline_->submit(say("a.")); });
  EXPECT_EQ(full.code(), ErrorCode::resource_exhausted);
  EXPECT_THAT(full.message(), HasSubstr("batch queue is full"));
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  held.go_on();
  const Error error = error_of([&] { late.read_all(); });
  EXPECT_EQ(error.code(), ErrorCode::deadline_exceeded);
  EXPECT_THAT(error.message(), HasSubstr("batch processing timed out"));
  EXPECT_FALSE(spoken.read_all().empty());
}

TEST_F(KokoroPipelineTest, AReaderThatPlaysWhileReceivingIsNotCutOff) {
  EngineConfig config = small();
  config.prefetch_s = 0.1;
  start(config);
  std::string phonemes;
  for (int i = 0; i < 100; ++i) phonemes += "aaaa. ";
  SpeechRequest request = say(phonemes);
  request.timeout = std::chrono::milliseconds(4000);
  Speech slow = pipeline_->submit(request);
  while (pipeline_->statistics().paused == 0 && !slow.ended())
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  std::this_thread::sleep_for(std::chrono::milliseconds(4200));
  EXPECT_FALSE(slow.ended());
  EXPECT_FALSE(slow.read_all().empty());
}

// A GPU is not asked between the stages of a pass: it takes milliseconds.
TEST_F(KokoroPipelineTest, ADeadlineTakesEffectWithinAChunk) {
  if (!testing_on_cpu()) GTEST_SKIP() << "of CPUs";
  HeldCall held(watch_);
  SpeechRequest request = say("aaaa aaaa aaaa.");
  request.timeout = std::chrono::milliseconds(1000);
  Speech late = start().submit(request);
  ASSERT_TRUE(held.has_begun());
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  held.go_on();
  EXPECT_EQ(error_of([&] { late.read_all(); }).code(), ErrorCode::deadline_exceeded);
  pipeline_->wait_until_empty(0);
  EXPECT_EQ(watch_.batches.size(), 1u);
  EXPECT_EQ(pipeline_->statistics().frames, 0u) << "the pass went on to its end";
  EXPECT_FALSE(pipeline_->submit(say("aaaa.")).read_all().empty());
}

TEST_F(KokoroPipelineTest, AWaitingRequestCanEndDuringTheBatchOfOthers) {
  if (!testing_on_cpu()) GTEST_SKIP() << "of CPUs";
  const std::vector<float> expected = start().submit(say("aaaa aaaa.")).read_all();
  pipeline_.reset();
  HeldCall held(watch_);
  EngineConfig config = small();
  config.max_batch_size = 1;
  Speech spoken = start(config).submit(say("aaaa aaaa."));
  ASSERT_TRUE(held.has_begun());
  SpeechRequest request = say("aaaa.");
  request.timeout = std::chrono::milliseconds(1);
  Speech late = pipeline_->submit(request);
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  held.go_on();
  EXPECT_EQ(error_of([&] { late.read_all(); }).code(), ErrorCode::deadline_exceeded);
  EXPECT_TRUE(spoken.read_all() == expected);
  EXPECT_LT(late.summary().total_s, spoken.summary().first_audio_s) << "it was told after the batch";
}

TEST_F(KokoroPipelineTest, StoppingEndsTheRemainingRequests) {
  HeldCall held(watch_);
  start();
  std::vector<Speech> speeches;
  for (int i = 0; i < 9; ++i) speeches.push_back(pipeline_->submit(say("aaaa aaaa, aaaa aaaa aaaa aaaa.")));
  ASSERT_TRUE(held.has_begun());
  pipeline_->close();
  EXPECT_EQ(error_of([&] { pipeline_->submit(say("a.")); }).code(), ErrorCode::unavailable);
  pipeline_->cancel_all();
  held.go_on();
  pipeline_.reset();
  for (Speech& speech : speeches)
    EXPECT_EQ(error_of([&] { speech.read_all(); }).code(), ErrorCode::unavailable);
}

}  // namespace
}  // namespace shoal::runtime
