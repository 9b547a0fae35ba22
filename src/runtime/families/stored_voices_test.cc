// Voices and encoded clips as files, through the public API.
#include "shoal/stored_voices.h"

#include <gmock/gmock.h>

#include "base/temporary_folder_testing.h"
#include "runtime/engine/engine_testing.h"
#include "runtime/families/kokoro/kokoro_testing.h"
#include "shoal/clip_cache.h"

namespace shoal::runtime {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using ::testing::Field;
using testing::KokoroFolder;
using testing::noise_wav;
using testing::tiny_config;

TEST(ModelVoices, AreListedWithLanguageAndDefault) {
  const KokoroFolder kokoro;
  const ModelVoices own = model_voices(kokoro.folder().path());
  EXPECT_EQ(own.dir, kokoro.folder().path("voices"));
  EXPECT_THAT(own.voices,
              ElementsAre(Field(&ModelVoice::name, "af_one"), Field(&ModelVoice::name, "bm_two"),
                          Field(&ModelVoice::name, "jf_three"), Field(&ModelVoice::name, "nobody")));
  EXPECT_EQ(own.voices[0].language, "en-us");
  EXPECT_TRUE(own.voices[0].is_default);
  EXPECT_EQ(own.voices[3].language, "");
  EXPECT_FALSE(own.voices[3].is_default);
}

TEST(ModelVoices, ExistOnlyForModelsWithVoicesOfTheirOwn) {
  for (const std::string& model : {tiny_config().model, std::string("random:kokoro")})
    EXPECT_EQ(error_of([&] { model_voices(model); }).code(), ErrorCode::unsupported) << model;
}

TEST(ClipVoices, AreExaminedOneByOne) {
  const TemporaryFolder folder;
  folder.write("refs/ann/clip.wav", noise_wav(1, 1));
  folder.write("refs/ann/clip.lab", "Words.");
  folder.write("refs/bad/clip.wav", "no sound");
  folder.write("refs/bad/clip.lab", "Words.");
  folder.write("model/voices/clara/clip.wav", noise_wav(2, 2));
  folder.write("model/voices/clara/clip.lab", "Words of the model.");
  EngineConfig config;
  config.model = folder.path("model");
  config.references_dir = folder.path("refs");
  const std::unique_ptr<ClipVoices> voices = clip_voices(config);
  const std::vector<VoiceExamination> found = voices->examine_all();
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].name, "ann");
  EXPECT_EQ(found[0].clips, 1);
  EXPECT_NEAR(found[0].seconds, 1, 1e-3);
  EXPECT_EQ(found[0].problem, "");
  EXPECT_EQ(found[1].name, "bad");
  EXPECT_NE(found[1].problem, "");
  EXPECT_EQ(found[2].name, "clara");
  EXPECT_TRUE(found[2].fixed);
  EXPECT_EQ(voices->examine("ann").seconds, found[0].seconds);
  EXPECT_THAT(voices->clips("ann"), ElementsAre(Field(&VoiceClip::transcript, "Words.")));
  EXPECT_EQ(error_of([&] { voices->clips("zed"); }).code(), ErrorCode::not_found);
}

TEST(ClipVoices, OfAModelWithVoicesOfItsOwnComeFromTheFolder) {
  const KokoroFolder kokoro;
  EXPECT_EQ(clip_voices(kokoro.config())->model_dir(), "");
  EXPECT_EQ(clip_voices(tiny_config())->model_dir(), tiny_config().model + "/voices");
}

TEST(CheckReference, RefusesTheReferencesThatARequestRefuses) {
  check_reference({.audio = noise_wav(1, 1), .text = "Words."}, "clip");
  EXPECT_EQ(error_of([] { check_reference({.audio = "no sound", .text = "Words."}, "clip"); }).code(),
            ErrorCode::corrupt_file);
  EXPECT_EQ(error_of([] { check_reference({.audio = noise_wav(0.1, 1), .text = "Words."}, "clip"); }).code(),
            ErrorCode::invalid_argument);
  EXPECT_EQ(error_of([] { check_reference({.audio = noise_wav(1, 1), .text = " "}, "clip"); }).code(),
            ErrorCode::invalid_argument);
}

TEST(ClipCache, HoldsWhatAnEngineEncodedUntilItIsCleared) {
  const TemporaryFolder folder;
  EngineConfig config = tiny_config();
  config.cache_dir = folder.path("cache");
  EXPECT_EQ(clip_cache_dir(config), config.cache_dir);
  EXPECT_EQ(clip_cache_usage(config.cache_dir).files, 0);
  Engine engine(config);
  engine.start();
  const EncodedClip clip = engine.encode(noise_wav(1, 1));
  EXPECT_EQ(clip.codes.size(), static_cast<size_t>(clip.frames * clip.codebooks));
  const ClipCacheUsage usage = clip_cache_usage(config.cache_dir);
  EXPECT_EQ(usage.files, 1);
  EXPECT_GE(usage.bytes, 2 * clip.frames * clip.codebooks);
  EXPECT_EQ(usage.disk_bytes % 4096, 0);
  EXPECT_EQ(clear_clip_cache(config.cache_dir).files, 1);
  EXPECT_EQ(clip_cache_usage(config.cache_dir).files, 0);
}

TEST(ClipCache, IsAbsentWhenDisabled) {
  EXPECT_EQ(clip_cache_dir(tiny_config()), "");
  EXPECT_EQ(clip_cache_usage("").files, 0);
  EXPECT_EQ(clear_clip_cache("").files, 0);
}

}  // namespace
}  // namespace shoal::runtime
