// The codes and samples of a request depend only on the request: bit for bit, whatever else is served, in
// whatever order, however prompts are cut, wherever pages are, whatever was cached or preempted.
#include <algorithm>
#include <gtest/gtest.h>
#include <thread>

#include "runtime/engine/batch_seeds.h"
#include "runtime/engine/engine_testing.h"
#include "runtime/engine/prosody.h"

namespace shoal::runtime {
namespace {

using testing::Answer;
using testing::answer_of;
using testing::between;

constexpr int kRequestsOfATrace = 32;

struct Traffic {
  std::vector<SpeechRequest> requests;
  std::vector<Answer> alone;  // one request at a time, nothing cached, prompts in one piece
};

const Traffic& traffic() {
  static const Traffic made = [] {
    Traffic t;
    std::mt19937_64 random(7);
    std::vector<ReferenceCodes> voices;
    for (const int frames : {5, 23, 40}) voices.push_back(testing::random_voice(random, frames));
    for (int i = 0; i < kRequestsOfATrace; ++i)
      t.requests.push_back(testing::random_request(random, voices, 24));
    EngineConfig config = testing::tiny_config();
    config.max_batch_size = 1;
    config.prefix_cache = false;
    config.prefill_columns = 4096;
    Engine engine(config);
    engine.start();
    for (const SpeechRequest& request : t.requests) {
      Speech speech = engine.submit(request);
      t.alone.push_back(answer_of(speech));
    }
    return t;
  }();
  return made;
}

// Submits all requests in an order and at moments of the seed's choosing; returns the engine's statistics.
Statistics expect_answers_as_alone(const EngineConfig& config, uint64_t seed) {
  std::mt19937_64 random(seed);
  Engine engine(config);
  engine.start();
  std::vector<size_t> order(traffic().requests.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), random);
  std::vector<std::optional<Speech>> speeches(order.size());
  for (const size_t i : order) {
    if (between(random, 0, 3) == 0)
      std::this_thread::sleep_for(std::chrono::microseconds(between(random, 0, 3000)));
    speeches[i] = engine.submit(traffic().requests[i]);
  }
  for (size_t i = 0; i < speeches.size(); ++i) {
    const Answer answer = answer_of(*speeches[i]);
    EXPECT_EQ(answer.codes, traffic().alone[i].codes) << "request " << i << ", seed " << seed;
    EXPECT_EQ(answer.sound, traffic().alone[i].sound) << "request " << i << ", seed " << seed;
  }
  return engine.statistics();
}

TEST(Determinism, TheAnswersAreWorthComparing) {
  size_t different = 0;
  for (size_t i = 1; i < traffic().alone.size(); ++i) {
    EXPECT_FALSE(traffic().alone[i].sound.empty());
    different += traffic().alone[i] != traffic().alone[i - 1];
  }
  EXPECT_EQ(different, traffic().alone.size() - 1);
}

TEST(Determinism, AloneEqualsInBatchesOfAnySize) {
  for (const int batch : {2, 7, 64}) {
    SCOPED_TRACE(batch);
    EngineConfig config = testing::tiny_config();
    config.max_batch_size = batch;
    const Statistics statistics = expect_answers_as_alone(config, static_cast<uint64_t>(batch));
    if (batch == 64) {
      EXPECT_GT(statistics.batch_size.mean(), 1.5);
    }
    EXPECT_GT(statistics.kv.hit_columns, 0);
  }
}

TEST(Determinism, PromptsInPiecesEqualPromptsAtOnce) {
  for (const auto& [columns, page] : {std::pair{3, 32}, {7, 8}, {64, 5}}) {
    SCOPED_TRACE(columns);
    EngineConfig config = testing::tiny_config();
    config.max_batch_size = 16;
    config.prefill_columns = columns;
    config.kv_page_size = page;
    expect_answers_as_alone(config, 100 + static_cast<uint64_t>(columns));
  }
}

TEST(Determinism, ColdEqualsCached) {
  EngineConfig config = testing::tiny_config();
  config.max_batch_size = 8;
  config.prefix_cache = false;
  EXPECT_EQ(expect_answers_as_alone(config, 200).kv.hit_columns, 0);
  config.prefix_cache = true;
  config.kv_cache_size = 1;
  EXPECT_GT(expect_answers_as_alone(config, 201).kv.hit_columns, 0);
}

// Many requests with plenty of pages, and with so few that some are preempted.
void expect_preempted_as_undisturbed(EngineConfig config, int count) {
  std::mt19937_64 random(300);
  const std::vector<ReferenceCodes> voices = {testing::random_voice(random, 30)};
  std::vector<SpeechRequest> requests;
  for (int i = 0; i < count; ++i) {
    requests.push_back(testing::random_request(random, voices, 10));
    requests.back().max_new_tokens = 150;
    requests.back().chunk_length = 200;
  }
  config.max_batch_size = count;
  config.kv_page_size = 8;
  std::vector<std::vector<Answer>> answers;
  // 1: about 680 columns in f32, 2,570 in int8; a sequence has up to 230.
  for (const int64_t megabytes : {64, 1}) {
    config.kv_memory_mb = megabytes;
    Engine engine(config);
    engine.start();
    std::vector<Speech> speeches;
    for (const SpeechRequest& request : requests) speeches.push_back(engine.submit(request));
    answers.emplace_back();
    for (Speech& speech : speeches) answers.back().push_back(answer_of(speech));
    EXPECT_EQ(engine.statistics().preemptions > 0, megabytes == 1);
    EXPECT_EQ(engine.statistics().kv.pages_used, 0);
  }
  EXPECT_EQ(answers[0], answers[1]);
}

TEST(Determinism, PreemptedEqualsUndisturbed) { expect_preempted_as_undisturbed(testing::tiny_config(), 12); }

TEST(Determinism, ThreadsAndTheirSplitChangeNothing) {
  for (const auto& [threads, codec] : {std::pair{1, 0}, {1, 1}, {2, 1}}) {
    EngineConfig config = testing::tiny_config();
    config.threads = threads;
    config.codec_threads = codec;
    expect_answers_as_alone(config, 400 + static_cast<uint64_t>(threads + codec));
  }
}

// Of all requests, submitted at once. hit_columns: that the prefix cache had.
std::vector<Answer> answers_of(const EngineConfig& config, int copies = 1, int64_t* hit_columns = nullptr) {
  Engine engine(config);
  engine.start();
  std::vector<Speech> speeches;
  for (int copy = 0; copy < copies; ++copy)
    for (const SpeechRequest& request : traffic().requests) speeches.push_back(engine.submit(request));
  std::vector<Answer> answers;
  for (Speech& speech : speeches) answers.push_back(answer_of(speech));
  if (hit_columns) *hit_columns = engine.statistics().kv.hit_columns;
  return answers;
}

// One request at a time, and many.
void expect_the_same_alone_and_together(EngineConfig config, int together = 16, int copies = 1) {
  config.max_batch_size = 1;
  const std::vector<Answer> alone = answers_of(config, copies);
  config.max_batch_size = together;
  EXPECT_EQ(answers_of(config, copies), alone);
}

// Enough for decoding and the codec to divide a GPU.
TEST(Determinism, SoManyThatAGpuIsDividedTooAloneAndTogether) {
  expect_the_same_alone_and_together(testing::tiny_config(), 64, /*copies=*/4);
}

TEST(Determinism, Bfloat16TooAloneAndTogether) {
  EngineConfig config = testing::tiny_config();
  config.precision = Precision::bfloat16;
  expect_the_same_alone_and_together(config);
}

TEST(Determinism, EightBitWeightsTooAloneAndTogether) {
  EngineConfig config = testing::tiny_config();
  config.weights = WeightFormat::int8;
  config.precision = Precision::bfloat16;  // a GPU multiplies weights of 8 bits by 16
  expect_the_same_alone_and_together(config);
}

TEST(Determinism, FourBitWeightsTooAloneAndTogether) {
  EngineConfig config = testing::tiny_config();
  config.weights = WeightFormat::int4;
  config.precision = Precision::bfloat16;
  expect_the_same_alone_and_together(config);
}

TEST(Determinism, EightBitKeysAndValuesTooAloneAndTogether) {
  EngineConfig config = testing::tiny_config();
  config.kv_precision = KvPrecision::int8;
  expect_the_same_alone_and_together(config);
  config.precision = Precision::bfloat16;
  expect_the_same_alone_and_together(config);
}

TEST(Determinism, EightBitKeysAndValuesTooInPiecesFromTheCacheAndPreempted) {
  EngineConfig config = testing::tiny_config();
  config.kv_precision = KvPrecision::int8;
  config.max_batch_size = 1;
  config.prefix_cache = false;
  config.prefill_columns = 4096;
  const std::vector<Answer> alone = answers_of(config);
  EXPECT_NE(alone, traffic().alone);  // of wider keys and values
  config.max_batch_size = 16;
  config.prefix_cache = true;
  for (const auto& [columns, page] : {std::pair{7, 8}, {64, 5}}) {
    SCOPED_TRACE(columns);
    config.prefill_columns = columns;
    config.kv_page_size = page;
    int64_t hit_columns = 0;
    EXPECT_EQ(answers_of(config, 1, &hit_columns), alone);
    EXPECT_GT(hit_columns, 0);
  }
  config.prefill_columns = 0;
  expect_preempted_as_undisturbed(config, 72);
}

TEST(Determinism, StreamedEqualsDecodingAllCodesAtOnce) {
  Engine engine(testing::tiny_config());
  engine.start();
  for (size_t i = 0; i < 8; ++i) {
    SpeechRequest request = traffic().requests[i];
    request.text = "One utterance.";
    Speech speech = engine.submit(request);
    const Answer answer = answer_of(speech);
    Prosody prosody(engine.sample_rate_hz(), request.speed, request.volume);
    prosody.add(engine.decode(answer.codes));
    prosody.add_rest();
    EXPECT_TRUE(std::ranges::equal(prosody.sound(), answer.sound));
  }
}

// Requests of two voices in one batch, and of one voice with two transcripts: none affects another.
TEST(Voices, NothingLeaksBetweenRequests) {
  std::mt19937_64 random(11);
  const ReferenceCodes anna = testing::random_voice(random, 20), ben = testing::random_voice(random, 20);
  ReferenceCodes anna_in_other_words = anna;
  anna_in_other_words.text = "other words";
  EngineConfig config = testing::tiny_config();
  config.max_batch_size = 8;
  std::vector<Answer> alone;
  std::vector<SpeechRequest> requests;
  for (const ReferenceCodes& voice : {anna, ben, anna_in_other_words}) {
    SpeechRequest request;
    request.text = "The same text for all.";
    request.seed = 5;
    request.max_new_tokens = 30;
    request.encoded_references = {voice};
    requests.push_back(request);
    Engine engine(config);
    engine.start();
    Speech speech = engine.submit(request);
    alone.push_back(answer_of(speech));
  }
  EXPECT_NE(alone[0].codes, alone[1].codes);
  EXPECT_NE(alone[0].codes, alone[2].codes);
  Engine engine(config);
  engine.start();
  for (int round = 0; round < 3; ++round) {
    std::vector<Speech> speeches;
    for (int i = 0; i < 12; ++i) speeches.push_back(engine.submit(requests[static_cast<size_t>(i) % 3]));
    for (size_t i = 0; i < speeches.size(); ++i) EXPECT_EQ(answer_of(speeches[i]), alone[i % 3]) << i;
  }
}

TEST(PrefixCache, TheSecondRequestOfAVoiceComputesOnlyItsOwnText) {
  std::mt19937_64 random(12);
  SpeechRequest request;
  request.encoded_references = {testing::random_voice(random, 90)};
  request.max_new_tokens = 4;
  const auto summary_of = [&](Engine& engine, const std::string& text) {
    request.text = text;
    Speech speech = engine.submit(request);
    speech.read_all();
    return speech.summary();
  };
  Engine engine(testing::tiny_config());
  engine.start();
  const SpeechSummary first = summary_of(engine, "Xylophone music.");
  EXPECT_EQ(first.cached_columns, 0);
  EXPECT_EQ(first.computed_columns, first.prompt_columns);
  // The prompts differ from the first letter of the text on: at most one column each byte is the text's own.
  const std::string text = "An old fish.";
  const SpeechSummary second = summary_of(engine, text);
  EXPECT_EQ(second.cached_columns + second.computed_columns, second.prompt_columns);
  EXPECT_LE(second.computed_columns, static_cast<int64_t>(text.size()));
  EXPECT_GT(second.computed_columns, 0);
  // The very same prompt again: all but its last column is there.
  EXPECT_EQ(summary_of(engine, text).computed_columns, 1);
}

// Requests of one voice that arrive together: one computes the prefix, the others wait for it.
TEST(PrefixCache, RequestsThatArriveTogetherShareThePrefixToo) {
  std::mt19937_64 random(13);
  SpeechRequest request;
  request.encoded_references = {testing::random_voice(random, 120)};
  request.max_new_tokens = 6;
  EngineConfig config = testing::tiny_config();
  config.prefill_columns = 50;
  config.batch_timeout_ms = 50;
  config.max_batch_size = 6;
  Engine engine(config);
  engine.start();
  std::vector<Speech> speeches;
  for (const char* text : {"Ant.", "Bee.", "Cat.", "Dog.", "Elk.", "Fox."}) {
    request.text = text;
    speeches.push_back(engine.submit(request));
  }
  int64_t computed = 0, prompt = 0;
  for (Speech& speech : speeches) {
    speech.read_all();
    computed += speech.summary().computed_columns;
    prompt += speech.summary().prompt_columns;
  }
  EXPECT_LE(computed, prompt / 6 + 6 * 5);
}

}  // namespace
}  // namespace shoal::runtime
