// What RunPod, Vertex AI and SageMaker set for a server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "shoal/settings.h"

namespace shoal {
namespace {

using Texts = std::map<std::string, std::string>;

ResolvedSettings on_platform(Texts platform, Texts flags = {}, Texts environment = {}) {
  return resolve_settings({.flags = std::move(flags),
                           .environment = std::move(environment),
                           .toml_path = "",
                           .platform = std::move(platform)});
}

std::string origin_of(const ResolvedSettings& resolved, std::string_view key) {
  return std::ranges::find(resolved.origins, key, &ResolvedSettings::Origin::key)->source;
}

TEST(Platform, APortReplacesThatOfTheAddressAndKeepsTheHost) {
  EXPECT_EQ(on_platform({{"PORT", "9000"}}).server.listen, "127.0.0.1:9000");
  const ResolvedSettings image = on_platform({{"PORT", "80"}}, {}, {{"SHOAL_LISTEN", "0.0.0.0:8080"}});
  EXPECT_EQ(image.server.listen, "0.0.0.0:80");
  EXPECT_EQ(origin_of(image, "listen"), "environment PORT");
  EXPECT_EQ(on_platform({{"AIP_HTTP_PORT", "8081"}, {"PORT", "1"}}, {}, {{"SHOAL_LISTEN", "[::]:8080"}})
                .server.listen,
            "[::]:8081");
  EXPECT_EQ(on_platform({{"PORT", ""}}).server.listen, ServerConfig().listen);
}

TEST(Platform, FlagsComeFirst) {
  const ResolvedSettings resolved = on_platform({{"PORT", "9000"}, {"AIP_PREDICT_ROUTE", "/a"}},
                                                {{"listen", "127.0.0.1:1"}, {"predict_route", "/b"}});
  EXPECT_EQ(resolved.server.listen, "127.0.0.1:1");
  EXPECT_EQ(resolved.server.predict_route, "/b");
  EXPECT_EQ(origin_of(resolved, "listen"), "flag --listen");
}

TEST(Platform, AHealthPortOfItsOwnIsASecondAddress) {
  const auto health = [](Texts platform) { return on_platform(std::move(platform)).server.operator_listen; };
  EXPECT_EQ(health({{"PORT", "80"}, {"PORT_HEALTH", "81"}}), "127.0.0.1:81");
  EXPECT_EQ(health({{"PORT", "80"}, {"PORT_HEALTH", "80"}}), "");
  EXPECT_EQ(health({{"PORT_HEALTH", "8080"}}), "");
  EXPECT_EQ(health({{"PORT_HEALTH", "8081"}}), "127.0.0.1:8081");
}

TEST(Platform, OnlyRunPodIsToldThatAServerIsLoading) {
  for (const char* variable : {"RUNPOD_POD_ID", "RUNPOD_ENDPOINT_ID", "PORT_HEALTH"})
    EXPECT_TRUE(on_platform({{variable, "8080"}}).server.ping_tells_loading) << variable;
  for (const char* variable : {"PORT", "AIP_HTTP_PORT"})
    EXPECT_FALSE(on_platform({{variable, "8080"}}).server.ping_tells_loading) << variable;
}

TEST(Platform, MultiModelEndpointsHaveTheFolderOfTheirModels) {
  EXPECT_EQ(on_platform({{"SAGEMAKER_MULTI_MODEL", "true"}}).server.models_root, "/opt/ml/models");
  EXPECT_EQ(on_platform({{"SAGEMAKER_MULTI_MODEL", "false"}}).server.models_root, "");
  EXPECT_EQ(on_platform({{"SAGEMAKER_MULTI_MODEL", "true"}}, {{"models_root", "/m"}}).server.models_root,
            "/m");
}

TEST(Platform, WhatIsNoPortOrPathIsRefusedByItsName) {
  const auto message = [](Texts platform) -> std::string {
    try {
      on_platform(std::move(platform));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      return error.message();
    }
    return "accepted";
  };
  for (const char* port : {"0", "65536", "-1", "80x", "tcp://1.2.3.4:80", " 80"})
    for (const char* variable : {"PORT", "PORT_HEALTH", "AIP_HTTP_PORT"})
      EXPECT_THAT(message({{variable, port}}),
                  testing::AllOf(testing::HasSubstr(variable), testing::HasSubstr("expected a port")));
  for (const char* path : {"predict", "/a b", "/a?b", "/{a}", "//", "/a/", "/\n"})
    for (const char* variable : {"AIP_PREDICT_ROUTE", "AIP_HEALTH_ROUTE"})
      EXPECT_THAT(message({{variable, path}}), testing::HasSubstr(variable)) << path;
  EXPECT_THAT(message({{"AIP_PREDICT_ROUTE", "/a"}, {"AIP_HEALTH_ROUTE", "/a"}}),
              testing::HasSubstr("another path"));
  EXPECT_EQ(message({{"AIP_PREDICT_ROUTE", "/v1/endpoints/1/deployedModels/2:predict"}}), "accepted");
}

}  // namespace
}  // namespace shoal
