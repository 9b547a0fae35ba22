#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

#include "server/page/page.h"
#include "server/routes/routes_testing.h"

namespace shoal::server {
namespace {

using testing::Answered;
using testing::get_request;

class PageRoutes : public ::testing::Test {
 protected:
  Answered get(const std::string& path, const Headers& headers = {}) {
    Request request = get_request(path);
    request.headers = headers;
    return bench_.ask(std::move(request));
  }
  static std::string quoted(const Asset& asset, const std::string& suffix = "") {
    return '"' + std::string(asset.etag) + suffix + '"';
  }

 private:
  Engine engine_{testing::built_in_config()};  // never started: the page is there before the model
  testing::RouteBench bench_{page_routes, engine_};
};

class BuiltPage : public PageRoutes {
 protected:
  void SetUp() override {
    if (assets().empty()) GTEST_SKIP() << "built without the web page";
  }
};

TEST_F(BuiltPage, EveryAssetIsServedUnchanged) {
  for (const Asset& asset : assets()) {
    const Answered answer = get(std::string(asset.path));
    EXPECT_EQ(answer.status, 200) << asset.path;
    EXPECT_EQ(answer.content_type, asset.content_type);
    EXPECT_EQ(answer.body(), asset.bytes);
    EXPECT_EQ(answer.header("etag"), quoted(asset));
    EXPECT_EQ(answer.header("content-encoding"), "");
  }
}

TEST_F(BuiltPage, ThePageIsRevalidatedAndItsAssetsAreCached) {
  EXPECT_EQ(get("/").header("cache-control"), "no-cache");
  for (const Asset& asset : assets()) {
    if (asset.path == "/") continue;
    EXPECT_EQ(get(std::string(asset.path)).header("cache-control"), "public, max-age=31536000, immutable");
  }
}

TEST_F(BuiltPage, AllowsNothingFromElsewhereAndNoFrames) {
  const Answered answer = get("/");
  const std::string policy = answer.header("content-security-policy");
  EXPECT_THAT(policy, ::testing::StartsWith("default-src 'none'; script-src 'self'; style-src 'self'"));
  EXPECT_THAT(policy, ::testing::HasSubstr("frame-ancestors 'none'"));
  EXPECT_THAT(policy, ::testing::Not(::testing::HasSubstr("unsafe")));
  EXPECT_THAT(policy, ::testing::Not(::testing::HasSubstr("http")));
  EXPECT_EQ(answer.header("x-content-type-options"), "nosniff");
  EXPECT_EQ(answer.header("referrer-policy"), "no-referrer");
  EXPECT_EQ(answer.header("x-frame-options"), "DENY");
}

TEST_F(BuiltPage, IsCompressedForClientsThatAcceptIt) {
  const Asset& page = *find_asset("/");
  ASSERT_FALSE(page.gzip.empty());
  for (const char* takes : {"gzip", "GZIP", "br, gzip", "deflate , gzip;q=0.5, *;q=0"}) {
    const Answered answer = get("/", {{"Accept-Encoding", takes}});
    EXPECT_EQ(answer.body(), page.gzip) << takes;
    EXPECT_EQ(answer.header("content-encoding"), "gzip");
    EXPECT_EQ(answer.header("etag"), quoted(page, "-gzip"));  // another representation
    EXPECT_EQ(answer.header("vary"), "accept-encoding");
  }
  for (const char* not_taken : {"", "br", "identity", "gzip;q=0", "gzip; q=0.000", "xgzip"}) {
    const Answered answer = get("/", {{"Accept-Encoding", not_taken}});
    EXPECT_EQ(answer.body(), page.bytes) << not_taken;
    EXPECT_EQ(answer.header("content-encoding"), "");
    EXPECT_EQ(answer.header("vary"), "accept-encoding");
  }
}

TEST_F(BuiltPage, AnUnchangedPageIsNotSentAgain) {
  const Asset& page = *find_asset("/");
  for (const std::string& tag :
       {quoted(page), "W/" + quoted(page), "\"other\", " + quoted(page), std::string("*")}) {
    const Answered answer = get("/", {{"If-None-Match", tag}});
    EXPECT_EQ(answer.status, 304) << tag;
    EXPECT_EQ(answer.body(), "");
    EXPECT_EQ(answer.header("etag"), quoted(page));
    EXPECT_EQ(answer.header("cache-control"), "no-cache");
  }
  // Tags of the other encoding, and texts that are not tags.
  for (const std::string& tag :
       {quoted(page, "-gzip"), std::string("\"\""), std::string(page.etag), std::string(",")}) {
    EXPECT_EQ(get("/", {{"If-None-Match", tag}}).status, 200) << tag;
  }
  const Headers both{{"Accept-Encoding", "gzip"}, {"If-None-Match", quoted(page, "-gzip")}};
  EXPECT_EQ(get("/", both).status, 304);
}

TEST_F(BuiltPage, UnknownNamesAreNotFound) {
  for (const char* path : {"/assets/app.js", "/assets/..", "/assets/%2e%2e"}) {
    const Answered answer = get(path);
    EXPECT_EQ(answer.status, 404) << path;
    ASSERT_TRUE(answer.error);
    EXPECT_EQ(answer.error->code(), ErrorCode::not_found);
  }
}

TEST_F(PageRoutes, WithoutThePageTheAnswerSaysHowToGetIt) {
  if (!assets().empty()) GTEST_SKIP() << "built with the web page";
  const Answered answer = get("/");
  EXPECT_EQ(answer.status, 404);
  EXPECT_THAT(answer.body(), ::testing::HasSubstr("-DSHOAL_WEB_PAGE=ON"));
}

TEST(PageTable, IsOpenAndCanBeSwitchedOff) {
  ServerConfig config;
  for (const Route& route : page_routes(config)) {
    EXPECT_EQ(route.access, Access::open) << route.path;  // the key is typed into the page
    EXPECT_EQ(route.body, BodySize::none);
    EXPECT_FALSE(route.takes_slot);
  }
  EXPECT_EQ(page_routes(config).size(), 2u);
  config.web_page = false;
  EXPECT_TRUE(page_routes(config).empty());
}

}  // namespace
}  // namespace shoal::server
