#include <cmath>
#include <gmock/gmock.h>

#include "base/temporary_folder_testing.h"
#include "capi/capi_testing.h"

namespace shoal::capi {
namespace {

using namespace testing;

Buffer noisy_clip() {
  std::vector<float> samples(16000 * 2);
  for (size_t i = 0; i < samples.size(); ++i)
    samples[i] = 0.3f * std::sin(static_cast<float>(i) * 0.05f) * std::sin(static_cast<float>(i) * 0.0007f);
  return made<Buffer>(shoal_encode_sound, "flac", 16000, 0, samples.data(), samples.size());
}

std::vector<std::string> names_of(const CVoices& voices) {
  std::vector<std::string> names;
  const Json all = json_of(made<Buffer>(shoal_voices_list, voices.get()));
  for (const Json& voice : all.as_array()) names.push_back(voice.at("name").as_string());
  return names;
}

TEST(CVoices, AreAddedNamedRenamedAndRemoved) {
  const TemporaryFolder folder;
  const Config config = tiny_config();
  shoal_config_set(config.get(), "references_dir", folder.path("voices").c_str(), nullptr);
  const CVoices voices = made<CVoices>(shoal_voices_open, config.get());
  EXPECT_TRUE(names_of(voices).empty());
  const Buffer clip = noisy_clip();
  const void* const bytes = shoal_buffer_data(clip.get());
  const size_t size = shoal_buffer_size(clip.get());
  shoal_error error = SHOAL_ERROR_INIT;
  EXPECT_EQ(shoal_voices_add(voices.get(), "me", bytes, size, "what I say", &error), SHOAL_OK)
      << error.message;
  EXPECT_EQ(shoal_voices_add(voices.get(), "me", bytes, size, "again", nullptr), SHOAL_ALREADY_EXISTS);
  EXPECT_EQ(shoal_voices_add(voices.get(), "../me", bytes, size, "a path", nullptr), SHOAL_INVALID_ARGUMENT);
  EXPECT_EQ(shoal_voices_add(voices.get(), "you", "noise", 5, "no sound", nullptr), SHOAL_CORRUPT_FILE);
  const Json me = json_of(made<Buffer>(shoal_voices_get, voices.get(), "me"));
  EXPECT_EQ(me.at("clips").as_integer(), 1);
  EXPECT_EQ(me.at("transcripts").as_array().at(0).as_string(), "what I say");
  EXPECT_FALSE(me.at("fixed").as_bool());
  EXPECT_EQ(shoal_voices_rename(voices.get(), "me", "myself", nullptr), SHOAL_OK);
  EXPECT_EQ(names_of(voices), std::vector<std::string>{"myself"});

  // The same folder, by an engine.
  const CEngine engine = made<CEngine>(shoal_engine_new, config.get());
  EXPECT_EQ(shoal_engine_start(engine.get(), nullptr), SHOAL_OK);
  const CVoices of_engine = made<CVoices>(shoal_engine_voices, engine.get());
  EXPECT_EQ(names_of(of_engine), std::vector<std::string>{"myself"});
  const Request request = short_request();
  shoal_request_set(request.get(), "voice", "myself", nullptr);
  EXPECT_FALSE(all_samples(submitted(engine, request)).empty());
  shoal_request_set(request.get(), "voice", "nobody", nullptr);
  shoal_speech* speech = nullptr;
  EXPECT_EQ(shoal_engine_submit(engine.get(), request.get(), nullptr, &speech, nullptr), SHOAL_NOT_FOUND);
  EXPECT_EQ(shoal_voices_remove(of_engine.get(), "myself", nullptr), SHOAL_OK);
  EXPECT_TRUE(names_of(voices).empty());
  EXPECT_EQ(shoal_voices_remove(voices.get(), "myself", nullptr), SHOAL_NOT_FOUND);
}

TEST(CVoices, OfAnEngineMayOutliveIt) {
  CEngine engine = started_engine();
  const CVoices voices = made<CVoices>(shoal_engine_voices, engine.get());
  engine.reset();
  EXPECT_TRUE(names_of(voices).empty());
}

}  // namespace
}  // namespace shoal::capi
