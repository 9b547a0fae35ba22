#include "server/page/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <regex>
#include <set>
#include <string>
#include <zlib.h>

namespace shoal::server {
namespace {

std::string unpacked(std::string_view gzip) {
  z_stream stream{};
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(gzip.data()));
  stream.avail_in = static_cast<uInt>(gzip.size());
  EXPECT_EQ(inflateInit2(&stream, 16 + MAX_WBITS), Z_OK);
  std::string out(1 << 20, '\0');
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  inflateEnd(&stream);
  return out;
}

class Page : public testing::Test {
 protected:
  void SetUp() override {
    if (assets().empty()) GTEST_SKIP() << "built without the web page";
  }
};

TEST_F(Page, EveryPathFindsItsAsset) {
  ASSERT_TRUE(find_asset("/"));
  EXPECT_EQ(find_asset("/")->content_type, "text/html; charset=utf-8");
  for (const std::string_view path : {"", "/assets", "/assets/", "/index.html", "/assets/../", "//"}) {
    EXPECT_FALSE(find_asset(path)) << path;
  }
}

TEST_F(Page, PathsAndTagsAreUnique) {
  std::set<std::string_view> paths, tags;
  for (const Asset& asset : assets()) {
    EXPECT_TRUE(paths.insert(asset.path).second) << asset.path;
    EXPECT_TRUE(tags.insert(asset.etag).second) << asset.path;
    EXPECT_THAT(std::string(asset.etag), testing::MatchesRegex("[A-Za-z0-9_-]{16}"));
  }
}

TEST_F(Page, CompressedFormsUnpackToTheSameBytes) {
  int compressed = 0;
  for (const Asset& asset : assets()) {
    if (asset.gzip.empty()) continue;
    ++compressed;
    EXPECT_EQ(unpacked(asset.gzip), asset.bytes) << asset.path;
  }
  EXPECT_GE(compressed, 3);  // page, script, style
}

// Assets are named by their content, every referenced name must exist, and nothing may come from elsewhere.
TEST_F(Page, EveryAssetItReferencesIsEmbedded) {
  int named = 0;
  const std::regex reference(R"re((?:href|src)="([^"]*)"|url\(([^)]*)\))re");
  for (const Asset& asset : assets()) {
    if (asset.path != "/" && asset.content_type.find("css") == std::string_view::npos) continue;
    const std::string text(asset.bytes);
    for (auto at = std::sregex_iterator(text.begin(), text.end(), reference); at != std::sregex_iterator();
         ++at) {
      std::string target = (*at)[1].matched ? (*at)[1].str() : (*at)[2].str();
      std::erase(target, '"');
      if (target.starts_with("#")) continue;
      if (target.starts_with("./")) target = "/assets/" + target.substr(2);
      EXPECT_TRUE(target.starts_with("/") && !target.starts_with("//")) << asset.path << " names " << target;
      if (!target.starts_with("/assets/")) continue;  // other routes of the server
      ++named;
      EXPECT_TRUE(find_asset(target)) << asset.path << " names " << target;
    }
  }
  EXPECT_GE(named, 4);  // script, style, icon, font
}

TEST_F(Page, NothingIsInline) {
  const std::string page(find_asset("/")->bytes);
  EXPECT_FALSE(
      std::regex_search(page, std::regex(R"re(<script(?![^>]*\bsrc=)|<style|\sstyle=|\son[a-z]+=)re")));
}

TEST_F(Page, IsSmall) {
  size_t bytes = 0;
  for (const Asset& asset : assets()) bytes += asset.bytes.size();
  EXPECT_LE(bytes, 250u << 10);
}

}  // namespace
}  // namespace shoal::server
