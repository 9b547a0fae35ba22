#include "bench/load/url.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "bench/load/question.h"

namespace shoal::load {
namespace {

TEST(Url, IsReadInItsParts) {
  const Url url = parse_url("https://tts.example.com:8443/v1/audio/speech?x=1#top");
  EXPECT_TRUE(url.tls);
  EXPECT_EQ(url.host, "tts.example.com");
  EXPECT_EQ(url.port, "8443");
  EXPECT_EQ(url.path, "/v1/audio/speech?x=1");
  EXPECT_EQ(url.authority(), "tts.example.com:8443");
  EXPECT_EQ(parse_url("http://[::1]:80").authority(), "[::1]");
  EXPECT_EQ(parse_url("http://h").port, "80");
}

TEST(Url, OfAnotherFormIsRefused) {
  for (const char* text :
       {"", "127.0.0.1:8080", "ftp://h", "http://", "http://h:0", "http://h:65536", "http://h:8o",
        "http://[::1", "http://a b", "http://me:word@h", "http://h/\r\nX: y"})
    EXPECT_THROW(parse_url(text), Error) << text;
}

TEST(Target, TakesTheRouteFromTheUrl) {
  EXPECT_EQ(make_target("http://h", "auto").url.path, "/v1/audio/speech");
  EXPECT_EQ(make_target("http://h/", "fish").url.path, "/v1/tts");
  EXPECT_EQ(make_target("http://h/v1", "auto").url.path, "/v1/audio/speech");
  EXPECT_EQ(make_target("http://h/v1/tts", "auto").api, Api::fish);
  EXPECT_EQ(make_target("http://h/own/path", "auto").url.path, "/own/path");
  EXPECT_EQ(make_target("http://h/v1/tts/batch", "auto").api, Api::batch);
  EXPECT_EQ(make_target("http://h", "batch").url.path, "/v1/tts/batch");
  EXPECT_EQ(make_target("ws://h", "auto").url.text(), "http://h/v1/audio/stream");
  EXPECT_TRUE(make_target("wss://h/v1/audio/stream", "auto").url.tls);
  EXPECT_EQ(make_target("http://h/v1/audio/stream", "auto").api, Api::live);
  EXPECT_THROW(make_target("ws://h/v1/tts", "fish"), Error);
}

}  // namespace
}  // namespace shoal::load
