#include "weights/model_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder_testing.h"
#include "weights/archives_testing.h"

namespace shoal::weights {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(ModelDir, FindsTheFilesOfTheFixture) {
  const std::string dir = SHOAL_SOURCE_DIR "/tests/data/fish/set_a";
  const ModelFiles files = find_model_files(dir);
  EXPECT_EQ(files.dir, dir);
  EXPECT_EQ(files.config, dir + "/config.json");
  EXPECT_EQ(files.weights, dir + "/model.pth");
  EXPECT_EQ(files.codec, dir + "/codec.pth");
  EXPECT_EQ(files.codec_config, dir + "/codec_config.json");
  EXPECT_EQ(files.tokenizer, dir + "/tokenizer.tiktoken");
  EXPECT_EQ(files.special_tokens, dir + "/special_tokens.json");
  EXPECT_EQ(find_model_files(dir + "/").weights, dir + "/model.pth");
}

TEST(ModelDir, PrefersTheIndexThenSafetensorsThenPth) {
  const TemporaryFolder folder;
  for (const char* name : {"config.json", "tokenizer.json", "model.pth", "codec.pth"}) folder.write(name, "");
  ModelFiles files = find_model_files(folder.path());
  EXPECT_EQ(files.weights, folder.path() + "/model.pth");
  EXPECT_EQ(files.codec_config, "");
  EXPECT_EQ(files.special_tokens, "");
  EXPECT_EQ(files.tokenizer, folder.path() + "/tokenizer.json");
  for (const char* name : {"model.safetensors", "model.safetensors.index.json"}) {
    folder.write(name, "");
    EXPECT_EQ(find_model_files(folder.path()).weights, folder.path() + "/" + name);
  }
  folder.write("codec.safetensors", "");
  folder.write("tokenizer.tiktoken", "");
  files = find_model_files(folder.path());
  EXPECT_EQ(files.codec, folder.path() + "/codec.safetensors");
  EXPECT_EQ(files.tokenizer, folder.path() + "/tokenizer.tiktoken");
}

TEST(ModelDir, SaysWhatIsMissing) {
  const TemporaryFolder folder;
  const auto message = [&] { return message_of([&] { find_model_files(folder.path()); }); };
  EXPECT_THAT(message(), AllOf(HasSubstr(folder.path()), HasSubstr("config.json")));
  folder.write("config.json", "{}");
  EXPECT_THAT(message(), HasSubstr("model.safetensors.index.json or model.safetensors or model.pth"));
  folder.write("model.pth", "");
  EXPECT_THAT(message(), HasSubstr("codec.pth"));
  folder.write("codec.pth", "");
  EXPECT_THAT(message(), HasSubstr("tokenizer.tiktoken or tokenizer.json"));
  EXPECT_EQ(code_of([&] { find_model_files(folder.path()); }), ErrorCode::not_found);
  EXPECT_THAT(message_of([&] { find_model_files(folder.path() + "/nowhere"); }), HasSubstr("does not exist"));
  EXPECT_THAT(message_of([&] { find_model_files(folder.path() + "/model.pth"); }), HasSubstr("is a file"));
}

}  // namespace
}  // namespace shoal::weights
