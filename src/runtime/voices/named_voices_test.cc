#include "runtime/voices/named_voices.h"

#include <gmock/gmock.h>

#include "audio/encoder.h"
#include "base/file.h"
#include "runtime/voices/voices_testing.h"

namespace shoal::runtime {
namespace {

using testing::ElementsAre;

std::string sound() {
  std::vector<float> samples(16000);
  for (size_t i = 0; i < samples.size(); ++i) samples[i] = i % 100 < 50 ? 0.5f : -0.5f;
  const auto bytes = audio::encode(audio::Format::wav, {.sample_rate_hz = 16000}, samples);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class NamedVoicesTest : public InTemporaryFolder {
 protected:
  void SetUp() override {
    InTemporaryFolder::SetUp();
    for (const std::string name : {"clara", "hugo"}) ship(name, "Words of the model.");
  }
  void ship(const std::string& name, const std::string& words) const {
    write(path("model/voices/" + name + "/clip.wav"), sound());
    write(path("model/voices/" + name + "/clip.lab"), words);
  }
  static std::vector<std::string> names_of(const NamedVoices& voices) {
    std::vector<std::string> names;
    for (const VoiceInfo& voice : voices.list()) names.push_back((voice.fixed ? "fixed " : "") + voice.name);
    return names;
  }
  NamedVoices voices_{path("added"), path("model/voices")};
};

TEST_F(NamedVoicesTest, BothFoldersAreListedAndFound) {
  EXPECT_THAT(names_of(voices_), ElementsAre("fixed clara", "fixed hugo"));
  voices_.add("diana", sound(), "Words of Diana.");
  EXPECT_THAT(names_of(voices_), ElementsAre("fixed clara", "diana", "fixed hugo"));
  EXPECT_TRUE(voices_.get("hugo").fixed);
  EXPECT_FALSE(voices_.get("diana").fixed);
  EXPECT_THAT(voices_.get("hugo").transcripts, ElementsAre("Words of the model."));
  EXPECT_EQ(voices_.clips("hugo")[0].audio_path, path("model/voices/hugo/clip.wav"));
  EXPECT_EQ(voices_.clips("diana")[0].audio_path, path("added/diana/sample.wav"));
  EXPECT_EQ(code_of([&] { voices_.clips("nobody"); }), ErrorCode::not_found);
  EXPECT_EQ(code_of([&] { voices_.clips("../voices/hugo"); }), ErrorCode::invalid_argument);
}

TEST_F(NamedVoicesTest, VoicesOfTheModelCannotBeChanged) {
  voices_.add("diana", sound(), "Words of Diana.");
  EXPECT_EQ(code_of([&] { voices_.add("clara", sound(), "Other words."); }), ErrorCode::already_exists);
  EXPECT_EQ(code_of([&] { voices_.rename("diana", "clara"); }), ErrorCode::already_exists);
  EXPECT_EQ(code_of([&] { voices_.rename("clara", "carla"); }), ErrorCode::unsupported);
  EXPECT_EQ(code_of([&] { voices_.remove("clara"); }), ErrorCode::unsupported);
  voices_.rename("diana", "dinah");
  voices_.remove("dinah");
  EXPECT_THAT(names_of(voices_), ElementsAre("fixed clara", "fixed hugo"));
}

// Whoever could add it would speak for everybody who asks for the model's own voice.
TEST_F(NamedVoicesTest, NamesOfTheModelsOwnVoiceAreReserved) {
  voices_.add("diana", sound(), "Words of Diana.");
  for (const char* name : {"default", "Default", "built-in"}) {
    EXPECT_EQ(code_of([&] { voices_.add(name, sound(), "Words."); }), ErrorCode::already_exists) << name;
    EXPECT_EQ(code_of([&] { voices_.rename("diana", name); }), ErrorCode::already_exists) << name;
  }
  EXPECT_THAT(names_of(voices_), ElementsAre("fixed clara", "diana", "fixed hugo"));
  // One that was put into the folder by hand is a voice as any other.
  write(path("added/default/clip.wav"), sound());
  write(path("added/default/clip.lab"), "Words of the operator.");
  EXPECT_EQ(voices_.clips("default")[0].transcript, "Words of the operator.");
  voices_.rename("default", "house");
  voices_.remove("house");
}

// Somebody's voice was there before the model brought one of that name.
TEST_F(NamedVoicesTest, AnAddedVoiceTakesPrecedenceOverTheModels) {
  voices_.add("nora", sound(), "Words of Nora.");
  ship("nora", "Words of the model.");
  EXPECT_THAT(names_of(voices_), ElementsAre("fixed clara", "fixed hugo", "nora"));
  EXPECT_EQ(voices_.clips("nora")[0].transcript, "Words of Nora.");
  voices_.rename("nora", "ann");
  EXPECT_EQ(voices_.clips("nora")[0].transcript, "Words of the model.");
  voices_.remove("ann");
}

TEST_F(NamedVoicesTest, AModelWithoutClipsHasNone) {
  EXPECT_TRUE(NamedVoices(path("added"), "").list().empty());
  EXPECT_TRUE(NamedVoices(path("added"), path("model")).list().empty());
  EXPECT_EQ(code_of([&] { NamedVoices(path("added"), "").get("hugo"); }), ErrorCode::not_found);
}

}  // namespace
}  // namespace shoal::runtime
