#include "shoal/server_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace shoal {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::string message_of(const ServerConfig& config) {
  try {
    config.validate();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.message();
  }
  return "accepted";
}

TEST(ServerConfig, TheDefaultsAreValidAndListenOnlyOnLoopback) {
  const ServerConfig config;
  EXPECT_EQ(message_of(config), "accepted");
  EXPECT_THAT(config.listen, StartsWith("127.0.0.1:"));
  EXPECT_EQ(config.admin_key + config.admin_key_file + config.cors_origins, "");
}

TEST(ServerConfig, FurtherModelsHaveNamesAndFolders) {
  const std::vector<NamedModel> models = parse_models(" kokoro = /srv/Kokoro-82M , x=a=b");
  ASSERT_EQ(models.size(), 2u);
  EXPECT_EQ(models[0].name + "|" + models[0].dir, "kokoro|/srv/Kokoro-82M");
  EXPECT_EQ(models[1].name + "|" + models[1].dir, "x|a=b");
  EXPECT_TRUE(parse_models("").empty());
}

TEST(ServerConfig, RangesNameTheFieldAndTheValue) {
  EXPECT_EQ(message_of({.max_connections = 0}), "max_connections: expected 1 to 1048576, got 0");
  EXPECT_EQ(message_of({.max_reference_s = 121}), "max_reference_s: expected 1 to 120, got 121");
  EXPECT_EQ(message_of({.grace_s = -1}), "grace_s: expected 0 to 86400, got -1");
}

TEST(ServerConfig, AddressesHaveAHostAndAPort) {
  for (const char* good : {"127.0.0.1:8080", "0.0.0.0:0", "localhost:65535", "[::1]:80", "[::]:8080",
                           "[fe80::1]:1", "my-host.example:8080"})
    EXPECT_EQ(message_of({.listen = good}), "accepted") << good;
  for (const char* bad : {"", "8080", ":8080", "localhost", "localhost:", "localhost:65536", "localhost:-1",
                          "localhost:80x", "::1:80", "[::1]", "[]:80", "[x]:80", "[1.2.3.4]:80", "[:::]:80",
                          "http://localhost:80", "a b:80", "a@b:80", "[::1:80"})
    EXPECT_THAT(message_of({.listen = bad}), StartsWith("listen: expected host:port or [v6]:port, got \""))
        << bad;
  EXPECT_EQ(message_of({.operator_listen = "127.0.0.1:9090"}), "accepted");
  EXPECT_THAT(message_of({.operator_listen = "9090"}), StartsWith("operator_listen: expected host:port"));
}

TEST(ServerConfig, WyomingIsSpokenOverTcpAndUnixSockets) {
  const std::string list = " tcp://0.0.0.0:10200,unix:///run/a b/w.sock , tcp://[::1]:0, tcp://[::1]:0";
  EXPECT_EQ(message_of({.wyoming = list}), "accepted");
  const std::vector<WyomingAddress> parsed = parse_wyoming(list);
  ASSERT_EQ(parsed.size(), 4u);
  EXPECT_EQ(parsed[0].listen + parsed[1].path + parsed[2].listen, "0.0.0.0:10200/run/a b/w.sock[::1]:0");
  EXPECT_TRUE(parse_wyoming(" ").empty());
  for (const char* bad :
       {"10200", "tcp://", "tcp://:1", "tcp://a:b", "http://a:1", "unix://", "unix://a", "unix:///",
        "unix:///a/", "tcp://a:1,", ",", "TCP://a:1", "tcp://a:1 tcp://b:1", "tcp://a:1/"})
    EXPECT_THAT(message_of({.wyoming = bad}), StartsWith("wyoming: expected tcp://host:port or unix:///path"))
        << bad;
  EXPECT_EQ(message_of({.wyoming = "unix:///" + std::string(106, 'a')}), "accepted");
  EXPECT_THAT(message_of({.wyoming = "unix:///" + std::string(107, 'a')}), HasSubstr("107 bytes"));
  EXPECT_THAT(message_of({.wyoming = "tcp://a:1, tcp://a:1"}), HasSubstr("twice"));
}

TEST(ServerConfig, KeysKeepWyomingOnThisMachineUnlessItsSettingSaysOtherwise) {
  for (const char* near :
       {"tcp://127.0.0.1:1", "tcp://127.8.9.1:1", "tcp://localhost:1", "tcp://[::1]:1", "unix:///run/w.sock"})
    EXPECT_EQ(message_of({.wyoming = near, .api_key = "sk-1"}), "accepted") << near;
  for (const char* far : {"tcp://0.0.0.0:1", "tcp://[::]:1", "tcp://192.168.1.2:1", "tcp://my-host:1",
                          "tcp://127.0.0.1.example:1", "unix:///run/w.sock, tcp://0.0.0.0:1"}) {
    EXPECT_EQ(message_of({.wyoming = far}), "accepted") << far;
    EXPECT_THAT(message_of({.wyoming = far, .api_key = "sk-1"}),
                AllOf(StartsWith("wyoming: "), HasSubstr("wyoming_without_key"), Not(HasSubstr("sk-1"))));
    EXPECT_THAT(message_of({.wyoming = far, .api_key_file = "keys"}), StartsWith("wyoming: "));
    EXPECT_EQ(message_of({.wyoming = far, .wyoming_without_key = true, .api_key = "sk-1"}), "accepted");
  }
}

TEST(ServerConfig, KeysFitInAHeaderAndAppearInNoMessage) {
  EXPECT_EQ(message_of({.api_key = "sk-~!:=+/._"}), "accepted");
  for (const char* bad : {"hush hush", "hush\n", "hush\x7f", "h\xc3\xbbsh", "\thush"}) {
    EXPECT_THAT(message_of({.api_key = bad}), AllOf(StartsWith("api_key: "), Not(HasSubstr("sh")))) << bad;
    EXPECT_THAT(message_of({.admin_key = bad}), StartsWith("admin_key: ")) << bad;
  }
  EXPECT_THAT(message_of({.api_key = std::string(513, 'x')}),
              AllOf(StartsWith("api_key: "), HasSubstr("512")));
  EXPECT_THAT(message_of({.api_key = "same", .admin_key = "same"}),
              AllOf(StartsWith("admin_key: "), Not(HasSubstr("same"))));
}

TEST(ServerConfig, ACertificateNeedsItsKey) {
  EXPECT_EQ(message_of({.tls_certificate = "a.pem", .tls_key = "b.pem"}), "accepted");
  EXPECT_THAT(message_of({.tls_certificate = "a.pem"}), StartsWith("tls_key: "));
  EXPECT_THAT(message_of({.tls_key = "b.pem"}), StartsWith("tls_certificate: "));
}

TEST(ServerConfig, OriginsAreOrigins) {
  for (const char* good : {"", "*", "https://example.org", "http://localhost:3000", "https://a, https://b:1",
                           "http://[::1]:80", "chrome-extension://abc"})
    EXPECT_EQ(message_of({.cors_origins = good}), "accepted") << good;
  for (const char* bad : {"example.org", "https://", "://a", "https://a,", ",https://a", "https://a/b",
                          "*, https://a", "https://a https://b", "https://a\r\nset-cookie: x", "null"})
    EXPECT_THAT(message_of({.cors_origins = bad}), StartsWith("cors_origins: expected")) << bad;
}

TEST(ServerConfig, WordsAndCombinations) {
  EXPECT_THAT(message_of({.log_format = "xml"}), StartsWith("log_format: expected text, json, got \"xml\""));
  EXPECT_THAT(message_of({.log_level = "INFO"}),
              StartsWith("log_level: expected debug, info, warning, error"));
  EXPECT_THAT(message_of({.max_body_mb = 100, .max_body_memory_mb = 99}),
              StartsWith("max_body_memory_mb: expected at least"));
  EXPECT_EQ(message_of({.max_body_mb = 100, .max_body_memory_mb = 100}), "accepted");
  for (const char* models : {"folder", "=folder", "name=", "a=b,,c=d", "a=b,a=c", "a\nb=c", ","})
    EXPECT_THAT(message_of({.models = models}), StartsWith("models: ")) << models;
  EXPECT_THAT(message_of({.model_name = "a\nb"}), StartsWith("model_name: "));
  EXPECT_THAT(message_of({.model_name = "\xff"}), StartsWith("model_name: "));
  EXPECT_THAT(message_of({.model_name = std::string(257, 'x')}), StartsWith("model_name: "));
}

}  // namespace
}  // namespace shoal
