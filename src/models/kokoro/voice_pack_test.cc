#include "models/kokoro/voice_pack.h"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder_testing.h"
#include "models/kokoro/fixtures_testing.h"
#include "models/kokoro/voice_testing.h"

namespace shoal::kokoro {
namespace {

using testing::HasSubstr;
using weights::code_of;
using weights::message_of;

VoicePack read(const std::string& path, std::string_view name = {}) {
  return read_voice(path, inspect_voices(path).format, name);
}

TEST(VoicePack, TheLengthChoosesTheRow) {
  const VoicePack pack = VoicePack::random(1);
  ASSERT_EQ(pack.values().size(), 510u * 256);
  EXPECT_EQ(pack.row(1).data(), pack.values().data());
  EXPECT_EQ(pack.row(510).data(), pack.values().data() + 509 * 256);
  EXPECT_EQ(pack.row(7).size(), 256u);
  for (const int64_t wrong : {int64_t{0}, int64_t{511}, int64_t{-1}, INT64_MAX, INT64_MIN}) {
    EXPECT_EQ(code_of([&] { pack.row(wrong); }), ErrorCode::invalid_argument) << wrong;
    EXPECT_THAT(message_of([&] { pack.row(wrong); }), HasSubstr(concat(wrong)));
  }
}

TEST(VoicePack, EveryFormatGivesTheSameWhateverTheFileName) {
  const TemporaryFolder folder;
  const VoicePack a = VoicePack::random(1), b = VoicePack::random(2);
  EXPECT_NE(values_of(a), values_of(b));
  const std::string raw = folder.write("x.pt", raw_voice(a)), tensor = folder.write("x.npz", tensor_voice(a)),
                    longer = folder.write("v0.pt", tensor_voice(a, 511)),
                    later = folder.write("v1.pt", tensor_voice(a, 512, 2)),
                    npz = folder.write("x.bin", npz_voices({{"b", b}, {"a", a}}));
  EXPECT_EQ(inspect_voices(raw).format, VoiceFormat::raw);
  EXPECT_EQ(inspect_voices(tensor).format, VoiceFormat::tensor);
  EXPECT_EQ(inspect_voices(npz).format, VoiceFormat::npz);
  EXPECT_EQ(inspect_voices(npz).names, (std::vector<std::string>{"b", "a"}));
  for (const std::string& path : {raw, tensor, longer, later})
    EXPECT_EQ(values_of(read(path)), values_of(a)) << path;
  EXPECT_EQ(values_of(read(npz, "a")), values_of(a));
  EXPECT_EQ(values_of(read(npz, "b")), values_of(b));
  EXPECT_EQ(code_of([&] { read(npz, "c"); }), ErrorCode::not_found);
  EXPECT_EQ(code_of([&] { read_voice(raw, VoiceFormat::npz, "a"); }), ErrorCode::corrupt_file) << "replaced";
}

TEST(VoicePack, OtherFilesAreRefused) {
  const TemporaryFolder folder;
  const VoicePack pack = VoicePack::random(1);
  const std::string raw = raw_voice(pack), tensor = tensor_voice(pack);
  const auto code_for = [&](const std::string& bytes) {
    const std::string path = folder.write("voice", bytes);
    return code_of([&] { inspect_voices(path); });
  };
  EXPECT_EQ(code_for(raw), std::nullopt);
  EXPECT_EQ(code_for(raw + raw + raw), ErrorCode::unsupported) << "several, nameless";
  EXPECT_THAT(message_of([&] { inspect_voices(folder.write("voices.bin", raw + raw)); }),
              HasSubstr("2 voices"));
  EXPECT_EQ(code_for(""), ErrorCode::corrupt_file);
  EXPECT_EQ(code_for(raw.substr(1)), ErrorCode::corrupt_file);
  EXPECT_EQ(code_for(raw + "x"), ErrorCode::corrupt_file);
  EXPECT_EQ(code_for("version https://git-lfs.github.com/spec/v1\n"), ErrorCode::corrupt_file);
  EXPECT_EQ(code_for(weights::small_torch_file()), ErrorCode::unsupported) << "a dict";
  EXPECT_EQ(code_for(weights::zip_file({{"a.npy", weights::npy_floats("(2, 3)", {1, 2, 3, 4, 5, 6})}})),
            ErrorCode::corrupt_file);
  EXPECT_EQ(
      code_for(weights::zip_file(
          {{"v/data.pkl", weights::pickle_file(weights::pickle_tensor(
                              {.storage_elements = 510 * 256, .shape = {256, 510}, .strides = {510, 1}}))},
           {"v/data/0", raw}})),
      ErrorCode::corrupt_file)
      << "transposed";
  EXPECT_EQ(code_of([&] { inspect_voices(folder.path() + "/absent"); }), ErrorCode::not_found);
  for (const size_t length :
       {size_t{3}, size_t{4}, size_t{100}, tensor.size() / 2, tensor.size() - 30, tensor.size() - 1})
    EXPECT_NE(code_for(tensor.substr(0, length)), std::nullopt) << length;
}

TEST(VoicePack, ValuesAreFinite) {
  const TemporaryFolder folder;
  std::vector<float> values = values_of(VoicePack::random(1));
  for (const float wrong : {NAN, INFINITY, -INFINITY}) {
    values[300] = wrong;
    const std::string path = folder.write("af_x.bin", weights::array_bytes(values));
    EXPECT_EQ(code_of([&] { read(path); }), ErrorCode::corrupt_file);
    EXPECT_THAT(message_of([&] { read(path); }),
                testing::AllOf(HasSubstr("af_x.bin"), HasSubstr("value 300")));
  }
}

TEST(VoicePack, ReadsTheFixtures) {
  const std::optional<std::string> folder = voices_fixture();
  if (!folder) GTEST_SKIP() << kNoVoices;
  const std::string voices = *folder + "/";
  const VoicePack tensor = read(voices + "af_tiny.pt");
  EXPECT_EQ(values_of(tensor), values_of(read(voices + "af_tiny.bin")));
  EXPECT_EQ(values_of(tensor), values_of(read(voices + "voices-v1.0.bin", "af_tiny")));
  const VoicePack view = read(voices + "am_tiny.pt");  // stores 511 rows
  EXPECT_EQ(values_of(view), values_of(read(voices + "voices-v1.0.bin", "am_tiny")));
  EXPECT_NE(values_of(view), values_of(tensor));
}

}  // namespace
}  // namespace shoal::kokoro
