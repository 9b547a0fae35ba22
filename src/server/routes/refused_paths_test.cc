#include "server/routes/refused_paths.h"

#include <gtest/gtest.h>

#include "server/routes/services.h"

namespace shoal::server {
namespace {

TEST(RefusedPaths, NameTheReplacement) {
  for (const char* path : {"/dev/dialogue", "/dev/ssml", "/dev/unload", "/models", "/models/a",
                           "/v1/download/speech.mp3", "/v1/test", "/web", "/web/", "/web/config",
                           "/web/js/app.js", "/debug/threads", "/debug/storage", "/debug/system"}) {
    const RefusedPath* refused = find_refused_path(path);
    ASSERT_TRUE(refused) << path;
    EXPECT_NE(refused->why.find('/'), std::string_view::npos) << path << " names no other path";
  }
  EXPECT_EQ(find_refused_path("/dev/ssml")->path, "/dev/ssml");
}

TEST(RefusedPaths, AreNotServedRoutes) {
  for (const char* path :
       {"", "/", "/dev", "/dev/dialogues", "/website", "/v1/testing", "/v1/downloads", "/nowhere"})
    EXPECT_FALSE(find_refused_path(path)) << path;
  for (const auto part :
       {openai_routes, kokoro_routes, fish_routes, reference_routes, codec_routes, batch_routes, live_routes,
        operator_routes, sagemaker_routes, kserve_routes, page_routes}) {
    for (const Route& route : part(ServerConfig())) EXPECT_FALSE(find_refused_path(route.path)) << route.path;
  }
}

}  // namespace
}  // namespace shoal::server
