#include "server/access/offered_protocols.h"

#include <gtest/gtest.h>

namespace shoal::server {
namespace {

// "live" or "-", and the key in quotes.
std::string read(const Headers& headers) {
  const OfferedProtocols offered = offered_protocols(headers);
  return (offered.live ? "live " : "- ") + (offered.key ? '"' + *offered.key + '"' : "none");
}
std::string read(const char* field) { return read(Headers{{"Sec-WebSocket-Protocol", field}}); }

TEST(OfferedProtocols, AreTokensInAnyNumberOfFields) {
  EXPECT_EQ(read(Headers{}), "- none");
  EXPECT_EQ(read("chat, superchat"), "- none");
  EXPECT_EQ(read("shoal"), "live none");
  EXPECT_EQ(read("shoal-api-key.sk-1,shoal"), "live \"sk-1\"");
  EXPECT_EQ(
      read(Headers{{"sec-websocket-protocol", "shoal"}, {"Sec-WebSocket-Protocol", "shoal-api-key.sk-1"}}),
      "live \"sk-1\"");
}

TEST(OfferedProtocols, KeysMayBePlainOrBase64) {
  EXPECT_EQ(read("shoal-api-key-base64url.c2Uvc2FtZT0"), "- \"se/same=\"");
  EXPECT_EQ(read("shoal-api-key-base64url.-_-_"), "- \"\xFB\xFF\xBF\"");
  EXPECT_EQ(read("shoal-api-key-base64url.!"), "- \"\"");
  EXPECT_EQ(read("shoal-api-key."), "- \"\"");
  EXPECT_EQ(read("shoal-api-key.one, shoal-api-key.two"), "- \"one\"") << "the first counts";
}

TEST(OfferedProtocols, CaseMatters) { EXPECT_EQ(read("Shoal, SHOAL-API-KEY.sk-1"), "- none"); }

}  // namespace
}  // namespace shoal::server
