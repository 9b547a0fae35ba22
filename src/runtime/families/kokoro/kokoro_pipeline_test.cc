// What happens when: the order of chunks, calls of the network that fail, requests that end in the middle.
#include <algorithm>
#include <array>
#include <atomic>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <new>
#include <semaphore>
#include <stdexcept>
#include <thread>

#include "runtime/families/kokoro/kokoro_pipeline_testing.h"

namespace shoal::runtime {
namespace {

using ::testing::Each;
using testing::error_of;
using ::testing::HasSubstr;
using testing::KokoroPipelineTest;
using ::testing::Le;

constexpr int32_t kVictim = 13;  // the id of b

bool holds_victim(std::span<const kokoro::Utterance> batch) {
  return std::ranges::any_of(batch, [](const auto& one) { return std::ranges::count(one.ids, kVictim) > 0; });
}

TEST_F(KokoroPipelineTest, TheFirstChunkIsHeardBeforeTheSecondIsSpoken) {
  std::binary_semaphore heard(0);
  int calls = 0;
  watch_.on_call = [&](auto) {
    if (++calls == 2) {
      EXPECT_TRUE(heard.try_acquire_for(std::chrono::minutes(1))) << "the first chunk was held";
    }
  };
  Speech speech = start().submit(say("aaaa aaaa, aaaa aaaa aaaa aaaa aaaa aaaa."));
  EXPECT_FALSE(speech.next().empty());
  heard.release();
  EXPECT_FALSE(speech.read_all().empty());
  EXPECT_GT(speech.summary().utterances, 1);
  for (const auto& batch : watch_.batches) EXPECT_THAT(batch, Each(::testing::SizeIs(Le(24u))));
}

TEST_F(KokoroPipelineTest, ChunksOfAWholeFileGoTogether) {
  SpeechRequest request = say("aaaa aaaa, aaaa aaaa aaaa aaaa aaaa aaaa.");
  start();
  const std::vector<float> streamed = pipeline_->submit(request).read_all();
  const size_t batches = watch_.batches.size();
  request.delivery = Delivery::whole;
  EXPECT_EQ(pipeline_->submit(request).read_all(), streamed);
  EXPECT_LT(watch_.batches.size() - batches, batches);
}

TEST_F(KokoroPipelineTest, ABatchIsNeverLargerThanAllowed) {
  start();
  std::vector<Speech> speeches;
  for (int i = 0; i < 30; ++i) speeches.push_back(pipeline_->submit(say(std::string(1 + i % 20, 'a'))));
  for (Speech& speech : speeches) EXPECT_FALSE(speech.read_all().empty());
  size_t spoken = 0, largest = 0;
  for (const auto& batch : watch_.batches) {
    spoken += batch.size();
    largest = std::max(largest, batch.size());
  }
  EXPECT_EQ(spoken, 30u);
  EXPECT_LE(largest, 4u);
}

TEST_F(KokoroPipelineTest, ASingleFailureIsRetriedUnnoticed) {
  start();
  const std::vector<float> wanted = pipeline_->submit(say("abab.")).read_all();
  const uint64_t frames = pipeline_->statistics().frames;
  int calls = 0;
  watch_.on_call = [&](auto) {
    if (++calls % 2 == 1) throw std::runtime_error("an op failed");
  };
  EXPECT_EQ(pipeline_->submit(say("abab.")).read_all(), wanted);
  EXPECT_EQ(pipeline_->statistics().retried_steps, 1u);
  EXPECT_EQ(pipeline_->statistics().frames, 2 * frames);
  EXPECT_EQ(pipeline_->statistics().failed, 0u);
}

TEST_F(KokoroPipelineTest, ARequestThatAlwaysFailsFailsAlone) {
  EngineConfig config = small();
  config.min_wait_ms = config.max_wait_ms = 50;  // so that all are in one batch
  start(config);
  const std::vector<float> wanted = pipeline_->submit(say("aɡa.")).read_all();
  watch_.on_call = [](std::span<const kokoro::Utterance> batch) {
    if (holds_victim(batch)) throw std::bad_alloc();
  };
  std::vector<Speech> speeches;
  for (const char* phonemes : {"aɡa.", "bab.", "aɡa.", "aɡa."})
    speeches.push_back(pipeline_->submit(say(phonemes)));
  for (const size_t i : {0, 2, 3}) EXPECT_EQ(speeches[i].read_all(), wanted) << i;
  EXPECT_EQ(error_of([&] { speeches[1].read_all(); }).code(), ErrorCode::resource_exhausted);
  pipeline_->wait_until_empty(0);
  EXPECT_EQ(pipeline_->statistics().failed, 1u);
  EXPECT_EQ(pipeline_->statistics().completed, 4u);
}

TEST_F(KokoroPipelineTest, SoundDeliveredBeforeAFailureIsKept) {
  watch_.on_call = [calls = 0](auto) mutable {
    if (++calls >= 2) throw Error(ErrorCode::internal, "an op failed");
  };
  Speech speech = start().submit(say("aaaa aaaa, aaaa aaaa aaaa aaaa aaaa aaaa."));
  EXPECT_FALSE(speech.next().empty());
  EXPECT_THAT(error_of([&] { speech.read_all(); }).message(), HasSubstr("an op failed"));
}

TEST_F(KokoroPipelineTest, ASlowReaderPausesOnlyItsOwnRequest) {
  EngineConfig config = small();
  config.prefetch_s = 0.001;  // below the allowed range: a chunk of this model is only a few milliseconds
  start(config);
  std::string phonemes;
  for (int i = 0; i < 40; ++i) phonemes += "aaaa aaaa aaaa. ";
  Speech slow = pipeline_->submit(say(phonemes));
  EXPECT_FALSE(pipeline_->submit(say(phonemes)).read_all().empty());
  EXPECT_FALSE(slow.ended());
  EXPECT_FALSE(slow.read_all().empty());
}

TEST_F(KokoroPipelineTest, SilenceIsMadeNoFasterThanItIsRead) {
  EngineConfig config = small();
  config.prefetch_s = 1;
  start(config);
  std::string phonemes = "a";
  for (int i = 0; i < 10; ++i) phonemes += "[pause:60s].";
  Speech slow = pipeline_->submit(say(phonemes));
  while (pipeline_->statistics().paused == 0 && !slow.ended()) std::this_thread::yield();
  const double rate = pipeline_->sample_rate_hz();
  EXPECT_FALSE(slow.ended());
  EXPECT_LT(static_cast<double>(slow.summary().samples), 3 * 60 * rate);
  EXPECT_GT(static_cast<double>(slow.read_all().size()), 600 * rate);
  EXPECT_EQ(error_of([&] { pipeline_->submit(say(phonemes + "[pause:1s]")); }).code(),
            ErrorCode::invalid_argument);
}

TEST_F(KokoroPipelineTest, SixtyFourRequestsWithCancelsNeitherLoseNorMixSound) {
  EngineConfig config = small();
  config.max_batch_size = 7;
  config.max_batch_frames = 600;
  config.max_wait_ms = 3;
  start(config);
  constexpr size_t kKinds = 8, kRequests = 64;
  std::mt19937_64 random(11);
  std::vector<SpeechRequest> kinds;
  std::vector<std::vector<float>> wanted;
  for (size_t i = 0; i < kKinds; ++i) {
    std::string phonemes;
    for (int n = testing::between(random, 1, i % 3 == 0 ? 300 : 30); n > 0; --n)
      phonemes += std::array{"a", "b", "ɡ", "a ", "b ", "ɡ\n"}[random() % 6];
    kinds.push_back(say("a" + phonemes));
    kinds.back().seed = random();
    kinds.back().delivery = i % 2 ? Delivery::whole : Delivery::streaming;
    kinds.back().client = std::string(1, static_cast<char>('a' + i % 3));
    wanted.push_back(pipeline_->submit(kinds[i]).read_all());
  }
  std::atomic<int> completed{0}, cancelled{0};
  const auto listen = [&](size_t thread) {
    std::mt19937_64 own(thread);
    std::vector<Speech> speeches;
    std::vector<bool> cancels;
    for (size_t i = thread; i < kRequests; i += 4) {
      speeches.push_back(pipeline_->submit(kinds[i % kKinds]));
      cancels.push_back(own() % 4 == 0);
      if (cancels.back() && own() % 2) speeches.back().cancel();
    }
    for (size_t n = 0; n < speeches.size(); ++n) {
      if (cancels[n]) speeches[n].cancel();
      try {
        EXPECT_TRUE(speeches[n].read_all() == wanted[(thread + 4 * n) % kKinds]) << n;
        ++completed;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::cancelled) << error.message();
        EXPECT_TRUE(cancels[n]);
        ++cancelled;
      }
    }
  };
  std::vector<std::jthread> threads;
  for (size_t t = 0; t < 4; ++t) threads.emplace_back(listen, t);
  threads.clear();
  EXPECT_EQ(static_cast<size_t>(completed + cancelled), kRequests);
  pipeline_->wait_until_empty(0);
  const Statistics statistics = pipeline_->statistics();
  EXPECT_EQ(statistics.submitted, kRequests + kKinds);
  EXPECT_EQ(statistics.completed, static_cast<uint64_t>(completed) + kKinds);
  EXPECT_EQ(statistics.cancelled, static_cast<uint64_t>(cancelled));
  EXPECT_EQ(statistics.failed + statistics.expired + statistics.refused, 0u);
  EXPECT_EQ(statistics.preparing + statistics.waiting + statistics.running + statistics.paused, 0);
}

TEST_F(KokoroPipelineTest, TheMeanBatchIsThatOfTheLastHundred) {
  EngineConfig config = small();
  config.min_wait_ms = config.max_wait_ms = 200;
  start(config);
  std::vector<Speech> speeches;
  for (int i = 0; i < 4; ++i) speeches.push_back(pipeline_->submit(say("aa.")));
  for (Speech& speech : speeches) speech.read_all();
  const Statistics first = pipeline_->statistics();
  EXPECT_DOUBLE_EQ(first.recent_batch_size, 4.0 / static_cast<double>(first.steps));
  pipeline_.reset();
  config.min_wait_ms = config.max_wait_ms = 0;
  start(config);
  speeches.clear();
  SpeechRequest together = say("aaaa aaaa, aaaa aaaa aaaa aaaa aaaa aaaa.");
  together.delivery = Delivery::whole;
  pipeline_->submit(together).read_all();
  EXPECT_GT(pipeline_->statistics().recent_batch_size, 1);
  for (int i = 0; i < 100; ++i) pipeline_->submit(say("a.")).read_all();
  EXPECT_EQ(pipeline_->statistics().recent_batch_size, 1);
  EXPECT_GT(pipeline_->statistics().batch_size.mean(), 1);
}

}  // namespace
}  // namespace shoal::runtime
