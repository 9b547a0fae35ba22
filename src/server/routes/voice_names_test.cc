#include "server/routes/voice_names.h"

#include <gmock/gmock.h>
#include <set>

#include "server/routes/kokoro_testing.h"

namespace shoal::server {
namespace {

using ::testing::HasSubstr;
using testing::shared_engine;  // has "anna" and "alloy"
using testing::shared_kokoro;  // has af_one, am_adam, bm_two, jf_three

ServerConfig with_aliases(const std::string& list) {
  ServerConfig config;
  config.voice_aliases = list;
  return config;
}

std::string joined(const std::vector<VoiceAlias>& aliases) {
  std::string text;
  for (const VoiceAlias& alias : aliases) text += alias.name + ">" + alias.voice + " ";
  return text;
}

TEST(VoiceNames, OpenAisNamesMapToSimilarVoicesOfTheModel) {
  const VoiceNames names{ServerConfig()};
  Engine& engine = shared_engine();
  EXPECT_EQ(joined(names.aliases_of(engine)),
            "ash>hugo ballad>edgar cedar>hugo coral>iris echo>felix fable>edgar marin>clara nova>nora "
            "onyx>oscar sage>ruth shimmer>iris verse>felix ");
  for (const VoiceAlias& alias : names.aliases_of(engine))
    EXPECT_EQ(names.voice_for(engine, alias.name), alias.voice);
  EXPECT_EQ(names.voice_for(engine, "alloy"), "alloy") << "a real voice comes first";
  for (const char* own : {"", "default", "built-in"}) EXPECT_EQ(names.voice_for(engine, own), "") << own;
  for (const char* other : {"anna", "nobody", "Nova"}) EXPECT_EQ(names.voice_for(engine, other), other);
}

TEST(VoiceNames, WithClipsAnAliasHasNoEffect) {
  const VoiceNames names{ServerConfig()};
  EXPECT_EQ(names.voice_for(shared_engine(), "nova", true), "");
  EXPECT_EQ(names.voice_for(shared_engine(), "anna", true), "anna") << "for the engine to refuse";
}

TEST(VoiceNames, AliasesOfTheOperatorComeFirst) {
  const VoiceNames names(with_aliases(
      "nova=anna, alloy=clara, echo=default, ash=nobody, narrator=nobody, narrator=ruth, lost=nobody, "
      "duo=af_one+bm_two"));
  Engine& engine = shared_engine();
  EXPECT_EQ(names.voice_for(engine, "nova"), "anna");
  EXPECT_EQ(names.voice_for(engine, "alloy"), "alloy") << "a real voice comes first";
  EXPECT_EQ(names.voice_for(engine, "echo"), "") << "the model's own";
  EXPECT_EQ(names.voice_for(engine, "ash"), "hugo") << "as if it were not there";
  EXPECT_EQ(names.voice_for(engine, "narrator"), "ruth") << "the first that there is";
  EXPECT_EQ(names.voice_for(engine, "lost"), "lost") << "an unknown voice";
  EXPECT_EQ(names.voice_for(engine, "duo"), "duo") << "no mixes here";
  EXPECT_THAT(joined(names.aliases_of(engine)),
              HasSubstr("echo>default fable>edgar marin>clara narrator>ruth "));
  EXPECT_EQ(names.voice_for(shared_kokoro(), "duo"), "af_one+bm_two");
  EXPECT_EQ(names.voice_for(shared_kokoro(), "narrator"), "narrator");
}

TEST(VoiceNames, KokoroUsesTheAliasesOfKokoroFastApi) {
  const VoiceNames names{ServerConfig()};
  EXPECT_EQ(joined(names.aliases_of(shared_kokoro())), "alloy>am_adam ");
  EXPECT_EQ(names.voice_for(shared_kokoro(), "alloy"), "am_adam");
  for (const char* own : {"nova", "marin", "default"})
    EXPECT_EQ(names.voice_for(shared_kokoro(), own), "") << own;
  EXPECT_EQ(VoiceNames(with_aliases("alloy=bm_two")).voice_for(shared_kokoro(), "alloy"), "bm_two");
}

// Any client may add a voice; it would speak for everybody who uses OpenAI's names.
TEST(VoiceNames, AnAddedVoiceIsNeverTheTargetOfAnOpenAiAlias) {
  const TemporaryFolder folder;
  folder.write("nora/clip.wav", testing::noise_wav(0.5, 1));
  folder.write("nora/clip.lab", "some words");
  EngineConfig config = testing::built_in_config();
  config.references_dir = folder.path();
  Engine engine(config);
  engine.start();
  EXPECT_EQ(VoiceNames{ServerConfig()}.voice_for(engine, "nova"), "");
  EXPECT_EQ(VoiceNames{ServerConfig()}.voice_for(engine, "onyx"), "oscar");
  EXPECT_EQ(VoiceNames(with_aliases("nova=nora")).voice_for(engine, "nova"), "nora");
}

TEST(VoiceNames, WithoutTheEncoderTheModelsOwnVoiceSpeaks) {
  EngineConfig config = testing::built_in_config();
  config.with_encoder = false;
  Engine engine(config);
  engine.start();
  EXPECT_EQ(VoiceNames{ServerConfig()}.voice_for(engine, "onyx"), "");
}

TEST(VoiceNames, AModelHasNoAliasesWhileItIsLoading) {
  Engine late(testing::built_in_config());
  EXPECT_EQ(joined(VoiceNames{ServerConfig()}.aliases_of(late)), "");
}

TEST(VoiceNames, ReservedNamesAreRefused) {
  const VoiceNames names(with_aliases("Narrator=clara"));
  for (const char* name : {"default", "Default", "built-in", "alloy", "NOVA", "cedar", "narrator"}) {
    try {
      names.check_not_reserved(name);
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::already_exists);
      EXPECT_THAT(error.message(), HasSubstr(name));
    }
  }
  for (const char* name : {"anna", "alloy2", "clara", ""}) names.check_not_reserved(name);
}

}  // namespace
}  // namespace shoal::server
