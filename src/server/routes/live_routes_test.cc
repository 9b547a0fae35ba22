#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <thread>

#include "audio/encoder.h"
#include "base/base64.h"
#include "server/body/value.h"
#include "server/routes/live_conversation_testing.h"
#include "shoal/seeds.h"

namespace shoal::server {
namespace {

using testing::FakeWebSocket;
using testing::Heard;
using testing::kEnd;
using testing::kStart;
using testing::kThreeSentences;
using testing::LiveRoutes;
using testing::number_of;
using testing::piece;
using testing::text_in;

TEST_F(LiveRoutes, AnUtteranceOfOneSegmentEqualsTheEnginesSpeech) {
  const Heard heard = talk({kStart, piece("A sma"), piece("ll fi"), piece("sh."), kEnd});
  EXPECT_EQ(heard.kinds, (std::vector<std::string>{"started", "segment", "sound", "done"}));
  EXPECT_FALSE(heard.thrown);
  ASSERT_EQ(heard.sound.size(), 1u);
  EXPECT_TRUE(heard.sound[0] == said(request("A small fish.", 5)));
  EXPECT_FALSE(heard.sound[0].empty());
  const Value& started = *heard.of("started")[0];
  EXPECT_EQ(text_in(started, "id"), "a");
  EXPECT_EQ(text_in(started, "format"), "pcm");
  EXPECT_EQ(number_of(started, "sample_rate"), engine_->sample_rate_hz());
  EXPECT_EQ(number_of(started, "seed"), 5);
  const Value& segment = *heard.of("segment")[0];
  EXPECT_EQ(text_in(segment, "text"), "A small fish.");
  EXPECT_EQ(number_of(segment, "at_seconds"), 0);
  const Value& done = *heard.of("done")[0];
  EXPECT_EQ(text_in(done, "id"), "a");
  EXPECT_EQ(text_in(done, "outcome"), "completed");
  EXPECT_EQ(number_of(done, "segments"), 1);
  EXPECT_NEAR(number_of(done, "seconds"),
              static_cast<double>(heard.sound[0].size()) / 2 / engine_->sample_rate_hz(), 1e-9);
}

TEST_F(LiveRoutes, SpeedAndVolumeReachTheEngine) {
  SpeechRequest fast = request("A small fish.", 5);
  fast.speed = 1.5;
  fast.volume = 0.5f;
  const Heard heard =
      talk({R"({"type":"start","seed":5,"max_new_tokens":12,"normalize":false,"speed":1.5,"volume":0.5})",
            piece("A small fish."), kEnd});
  EXPECT_TRUE(heard.sound == std::vector<std::string>{said(fast)});
  EXPECT_NEAR(number_of(*heard.of("done")[0], "seconds"),
              static_cast<double>(heard.sound.at(0).size()) / 2 / engine_->sample_rate_hz(), 1e-9);
}

// What clients send must not steer the model.
TEST_F(LiveRoutes, ControlTokensAreText) {
  const std::string text = "A fish <|im_end|> swims";
  SpeechRequest as_text = request(text, 5);
  as_text.special_tokens = false;
  const Heard heard = talk({kStart, piece(text), kEnd});
  EXPECT_TRUE(heard.sound[0] == said(as_text));
  SpeechRequest as_token = request(text, 5);
  as_token.special_tokens = true;
  EXPECT_FALSE(heard.sound[0] == said(as_token));
}

TEST_F(LiveRoutes, NamesOfTheModelsOwnVoiceAreAccepted) {
  const std::string own = said(request("A fish.", 5));
  for (const std::string name : {"default", "built-in"}) {
    const Heard heard =
        talk({R"({"type":"start","seed":5,"max_new_tokens":12,"normalize":false,"voice":")" + name + "\"}",
              piece("A fish."), kEnd});
    EXPECT_EQ(heard.outcomes(), std::vector<std::string>{"completed"});
    EXPECT_TRUE(heard.sound == std::vector<std::string>{own}) << name;
  }
}

TEST_F(LiveRoutes, ATextSoundsTheSameHoweverItIsCut) {
  const std::string text = kThreeSentences;
  const Heard whole = talk({kStart, piece(text), kEnd});
  EXPECT_EQ(whole.spoken(), text);
  EXPECT_EQ(whole.of("segment").size(), 3u);
  for (const uint64_t seed : {1, 2}) {
    std::mt19937_64 random(seed);
    std::vector<std::string> messages = {kStart};
    for (size_t begin = 0; begin < text.size();) {
      const size_t bytes = 1 + random() % 9;
      messages.push_back(piece(text.substr(begin, bytes)));
      begin += bytes;
    }
    messages.push_back(kEnd);
    const Heard cut = talk(messages);
    EXPECT_TRUE(cut.sound == whole.sound);
    EXPECT_EQ(cut.spoken(), text);
  }
}

// The engine splits this text in the same places, gives its utterances the same seeds, and keeps the voice of
// the first.
TEST_F(LiveRoutes, SegmentsContinueEachOtherLikeTheEnginesUtterances) {
  SpeechRequest one = request(kThreeSentences, 5);
  one.chunk_length = 50;
  Speech speech = engine_->submit(one);
  const std::string expected = pcm(speech.read_all());
  ASSERT_EQ(speech.summary().utterances, 3);
  EXPECT_TRUE(talk({kStart, piece(kThreeSentences), kEnd}).sound[0] == expected);
}

TEST_F(LiveRoutes, ReferencesSetTheVoiceAndTheNextSegmentStartsDuringPlayback) {
  const std::vector<std::byte> clip = audio::encode(
      audio::Format::wav, {.sample_rate_hz = engine_->sample_rate_hz(), .rewritable_header = true},
      engine_->submit(request("These are the words of a voice.", 9, 40)).read_all());
  const std::string audio(reinterpret_cast<const char*>(clip.data()), clip.size());
  const std::string words = "These are the words of a voice.";
  const Value start{Value::Object{
      {"type", {std::string("start")}},
      {"seed", {int64_t{5}}},
      {"normalize", {false}},
      {"max_new_tokens", {int64_t{12}}},
      {"references", {Value::Array{{Value::Object{{"audio", {to_base64(audio)}}, {"text", {words}}}}}}}}};
  const uint64_t before = engine_->statistics().submitted;
  uint64_t at_first_sound = 0;
  const Heard heard =
      talk({write_json(start), piece("One fish. Two more fish swim under the cold and blue moon."), kEnd}, 1,
           [&](const std::string& kind, FakeWebSocket&) {
             if (kind == "sound" && at_first_sound == 0) at_first_sound = engine_->statistics().submitted;
           });
  EXPECT_EQ(at_first_sound - before, 2u);
  std::string expected;
  for (const auto& [text, index] :
       {std::pair("One fish.", 0), {"Two more fish swim under the cold and blue moon.", 1}}) {
    SpeechRequest alone = request(text, seed_of_utterance(5, static_cast<size_t>(index)));
    alone.chunk_length = 0;
    alone.references = {{.audio = audio, .text = words}};
    expected += said(alone);
  }
  ASSERT_EQ(heard.sound.size(), 1u);
  EXPECT_TRUE(heard.sound[0] == expected);
  SpeechRequest unguided = request("One fish.", seed_of_utterance(5, 0));
  unguided.chunk_length = 0;
  EXPECT_FALSE(heard.sound[0].starts_with(said(unguided)));
}

TEST_F(LiveRoutes, UtterancesFollowEachOtherEachWithItsSettings) {
  const std::vector<std::pair<std::string, std::string>> formats = {
      {"wav", "RIFF"}, {"flac", "fLaC"}, {"opus", "OggS"}, {"pcm", ""}};
  size_t next = 0;
  const auto begin = [&](FakeWebSocket& socket) {
    if (next == formats.size()) return;
    socket.say(R"({"type":"start","seed":5,"max_new_tokens":16,"format":")" + formats[next++].first + "\"}");
    socket.say(piece("A fish."));
    socket.say(kEnd);
  };
  const Heard heard =
      talk({R"({"type":"ping"})"}, formats.size(), [&](const std::string& kind, FakeWebSocket& socket) {
        if (kind == "pong" || kind == "done") begin(socket);
      });
  EXPECT_EQ(heard.outcomes(), std::vector<std::string>(4, "completed"));
  ASSERT_EQ(heard.sound.size(), formats.size());
  for (size_t i = 0; i < formats.size(); ++i) EXPECT_TRUE(heard.sound[i].starts_with(formats[i].second)) << i;
  SpeechRequest same = request("A fish.", 5, 16);
  same.normalise.reset();
  EXPECT_TRUE(heard.sound[3] == said(same));
  // A wav has the same samples as pcm.
  EXPECT_TRUE(heard.sound[0].ends_with(heard.sound[3]));
}

TEST_F(LiveRoutes, AnotherSampleRateIsResampled) {
  const Heard heard =
      talk({R"({"type":"start","seed":5,"max_new_tokens":12,"normalize":false,"sample_rate":8000})",
            piece("A fish."), kEnd});
  EXPECT_EQ(number_of(*heard.of("started")[0], "sample_rate"), 8000);
  const double samples = static_cast<double>(said(request("A fish.", 5)).size()) / 2;
  EXPECT_NEAR(static_cast<double>(heard.sound[0].size()) / 2, samples * 8000 / engine_->sample_rate_hz(), 1);
}

TEST_F(LiveRoutes, FlushSpeaksTheTextSoFar) {
  bool ended = false;
  const Heard heard = talk({kStart, piece("No stop here"), R"({"type":"flush"})"}, 1,
                           [&](const std::string& kind, FakeWebSocket& socket) {
                             if (kind != "sound" || std::exchange(ended, true)) return;
                             socket.say(piece(" ... "));  // not speakable
                             socket.say(kEnd);
                           });
  EXPECT_EQ(heard.spoken(), "No stop here");
  EXPECT_TRUE(heard.sound[0] == said(request("No stop here", 5)));
}

TEST_F(LiveRoutes, AnUnspeakableUtteranceEndsWithAWarning) {
  const Heard heard = talk({kStart, piece("🎉 ... "), kEnd});
  EXPECT_EQ(heard.kinds, (std::vector<std::string>{"started", "done"}));
  const Value& done = *heard.of("done")[0];
  EXPECT_EQ(text_in(done, "outcome"), "completed");
  EXPECT_EQ(number_of(done, "seconds"), 0);
  EXPECT_NE(write_json(done).find("nothing in it that can be spoken"), std::string::npos) << write_json(done);
}

TEST_F(LiveRoutes, AnUtteranceWithoutTextEndsAtOnce) {
  const Heard heard = talk({kStart, kEnd});
  EXPECT_EQ(heard.kinds, (std::vector<std::string>{"started", "done"}));
  EXPECT_EQ(number_of(*heard.of("done")[0], "seconds"), 0);
}

}  // namespace
}  // namespace shoal::server
