#include "server/routes/route_pattern.h"

#include <gtest/gtest.h>

namespace shoal::server {
namespace {

TEST(RoutePatterns, StandForPartsOfAPath) {
  EXPECT_EQ(match_path("/v1/models", "/v1/models"), "");
  EXPECT_EQ(match_path("/v1/models", "/v1/models/x"), std::nullopt);
  EXPECT_EQ(match_path("/v1/models/{id}", "/v1/models/hexgrad/Kokoro-82M"), "hexgrad/Kokoro-82M");
  EXPECT_EQ(match_path("/v1/models/{id}", "/v1/models/"), std::nullopt);
  EXPECT_EQ(match_path("/v1/models/{id}", "/v1/models"), std::nullopt);
  EXPECT_EQ(match_path("/say/{voice}/stream", "/say/af_bella(2)+af_sky/stream"), "af_bella(2)+af_sky");
  for (const char* other :
       {"/say//stream", "/say/stream", "/say/a/b/stream", "/say/a/streams", "/sai/a/stream"})
    EXPECT_EQ(match_path("/say/{voice}/stream", other), std::nullopt) << other;
}

}  // namespace
}  // namespace shoal::server
