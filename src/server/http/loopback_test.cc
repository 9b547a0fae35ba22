#include "server/http/loopback.h"

#include <gtest/gtest.h>

namespace shoal::server {
namespace {

TEST(Loopback, ThePortIsRemovedFromAHost) {
  EXPECT_EQ(host_of("speech.example:8080"), "speech.example");
  EXPECT_EQ(host_of("speech.example"), "speech.example");
  EXPECT_EQ(host_of("[::1]:8080"), "[::1]");
  EXPECT_EQ(host_of("[::1]"), "[::1]");
  EXPECT_EQ(host_of("[::1"), "");
  EXPECT_EQ(host_of(""), "");
}

TEST(Loopback, KnowsTheNamesAndAddressesOfThisMachine) {
  for (const char* host :
       {"localhost", "LocalHost", "shoal.localhost", "a.b.LOCALHOST", "127.0.0.1", "127.1.2.3", "[::1]"})
    EXPECT_TRUE(is_loopback_host(host)) << host;
  for (const char* host : {"", "127.0.0.1.evil.example", "127.evil.example", "evil-localhost", "notlocalhost",
                           "localhost.evil.example", "128.0.0.1", "0.0.0.0", "[::]", "[::2]", "::1",
                           "[127.0.0.1]", "[", "[]", "]", "127.1", "10.0.0.1"})
    EXPECT_FALSE(is_loopback_host(host)) << host;
}

}  // namespace
}  // namespace shoal::server
