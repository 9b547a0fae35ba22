#include "base/base64.h"

#include <gtest/gtest.h>
#include <random>

namespace shoal {
namespace {

TEST(Base64, AgreesWithItsSpecification) {
  // RFC 4648, section 10.
  const std::pair<const char*, const char*> vectors[] = {{"", ""},
                                                         {"f", "Zg=="},
                                                         {"fo", "Zm8="},
                                                         {"foo", "Zm9v"},
                                                         {"foob", "Zm9vYg=="},
                                                         {"fooba", "Zm9vYmE="},
                                                         {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : vectors) {
    EXPECT_EQ(to_base64(bytes), text);
    EXPECT_EQ(from_base64(text), bytes);
    std::string bare = text;
    while (bare.ends_with('=')) bare.pop_back();
    EXPECT_EQ(from_base64(bare), bytes);
  }
}

TEST(Base64, AcceptsBothAlphabetsSpacesAndDataUrls) {
  EXPECT_EQ(from_base64("++//"), "\xfb\xef\xff");
  EXPECT_EQ(from_base64("--__"), "\xfb\xef\xff");
  EXPECT_EQ(from_base64(" Zm9v\r\nYg = =\n\t"), "foob");
  EXPECT_EQ(from_base64("data:audio/wav;base64,Zm9v"), "foo");
  EXPECT_EQ(from_base64("data:;base64,Zm9v"), "foo");
}

TEST(Base64, RefusesEverythingElse) {
  for (const char* bad :
       {"Z", "Zm9vY", "Zg=", "Zg===", "Zm8==", "Zm9v=", "=", "====", "Zg==Zg==", "Zm=9", "Zm9.", "\xc3\xa9",
        "data:audio/wav,Zm9v", "data:;base64", "/tmp/voice.wav", "https://x/y"})
    EXPECT_EQ(from_base64(bad), std::nullopt) << bad;
  EXPECT_EQ(from_base64(std::string_view("Zm\0v", 4)), std::nullopt);
}

TEST(Base64, WrittenTextReadsBackTheSame) {
  std::mt19937_64 random(1);
  for (size_t length = 0; length < 300; ++length) {
    std::string bytes;
    while (bytes.size() < length) bytes += static_cast<char>(random());
    EXPECT_EQ(from_base64(to_base64(bytes)), bytes);
  }
}

}  // namespace
}  // namespace shoal
