// HTTP under TLS.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <mutex>

#include "base/log.h"
#include "server/http/raw_client_testing.h"
#include "server/http/self_signed_testing.h"
#include "server/http/toy_application_testing.h"

namespace shoal::server {
namespace {

std::string get_tls(const std::string& target) { return "GET " + target + " HTTP/1.1\r\nHost: h\r\n\r\n"; }

TEST(TransportTls, AnswersStreamsAndPipelines) {
  const SelfSigned identity;
  ToyServer server(identity.options());
  RawClient client(server.port(), {.tls = true});
  ASSERT_TRUE(client.connected());
  client.send("POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n" + std::string(100'000, 'x'));
  EXPECT_EQ(client.read_answer().body, "POST /a\n" + std::string(100'000, 'x'));
  client.send(get_tls("/stream?pieces=20&bytes=50000") + get_tls("/b"));
  const Answer answer = client.read_answer();
  EXPECT_TRUE(answer.whole);
  EXPECT_EQ(answer.body.size(), 20u * 50'000 + 5);
  EXPECT_EQ(client.read_answer().body, "GET /b\n");
}

TEST(TransportTls, RefusalsArriveWhole) {
  const SelfSigned identity;
  ToyServer server(identity.options());
  RawClient client(server.port(), {.tls = true});
  client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4000000\r\n\r\n" + std::string(4'000'000, 'x'));
  EXPECT_EQ(client.read_answer().status, 413);
  EXPECT_TRUE(client.closed());
}

TEST(TransportTls, ClientsThatLeaveAreNoticed) {
  const SelfSigned identity;
  ToyServer server(identity.options());
  RawClient waiting(server.port(), {.tls = true}), streaming(server.port(), {.tls = true}),
      reset(server.port(), {.tls = true});
  waiting.send(get_tls("/wait"));
  reset.send(get_tls("/wait"));
  streaming.send(get_tls("/endless"));
  streaming.read(100'000);
  ASSERT_TRUE(eventually([&] { return server.application.waiting == 2; }));
  EXPECT_EQ(server.application.gone, 0);
  waiting.close();  // TLS says goodbye first: unread bytes stand before the end
  EXPECT_TRUE(eventually([&] { return server.application.gone == 1; }));
  streaming.close();
  reset.reset();
  EXPECT_TRUE(eventually([&] { return server.application.gone == 3 && server.application.cancelled == 3; }));
  EXPECT_TRUE(eventually([&] { return server.transport.statistics().connections == 0; }));
}

TEST(TransportTls, PlainHttpClientsAreRefused) {
  const SelfSigned identity;
  TransportOptions options = identity.options();
  options.header_timeout = std::chrono::milliseconds(300);
  ToyServer server(options);
  RawClient plain(server.port()), silent(server.port());
  plain.send(get_tls("/a"));
  EXPECT_EQ(plain.read_answer().status, 0);
  EXPECT_TRUE(plain.closed());
  EXPECT_TRUE(silent.closed());
  EXPECT_TRUE(server.application.records().empty());
}

TEST(TransportTls, DrainsIdleConnections) {
  const SelfSigned identity;
  ToyServer server(identity.options());
  RawClient client(server.port(), {.tls = true});
  client.send(get_tls("/a"));
  EXPECT_EQ(client.read_answer().status, 200);
  EXPECT_TRUE(server.transport.drain(std::chrono::milliseconds(10'000)));
  EXPECT_TRUE(client.closed());
}

TEST(TransportTls, Tls12UsesOnlyForwardSecretAuthenticatedCiphers) {
  const SelfSigned rsa(1, SelfSigned::Kind::rsa);
  ToyServer server(rsa.options());
  const auto connects = [&](const char* cipher) {
    return RawClient(server.port(), {.tls = true, .tls12_ciphers = cipher}).connected();
  };
  for (const char* good :
       {"ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES256-GCM-SHA384", "ECDHE-RSA-CHACHA20-POLY1305"})
    EXPECT_TRUE(connects(good)) << good;
  for (const char* bad : {"AES128-SHA", "AES256-SHA256", "AES128-GCM-SHA256", "AES256-GCM-SHA384",
                          "ECDHE-RSA-AES128-SHA", "ECDHE-RSA-AES256-SHA384"})
    EXPECT_FALSE(connects(bad)) << bad;
  EXPECT_TRUE(RawClient(server.port(), {.tls = true}).connected()) << "TLS 1.3";
}

TEST(TransportTls, ReadsCertificateAndKeyAgainWhenTheyChange) {
  const SelfSigned identity(1), next(2);
  TransportOptions options = identity.options();
  options.tls_watch_interval = std::chrono::milliseconds(20);
  ToyServer server(options);
  RawClient old(server.port(), {.tls = true});
  EXPECT_EQ(old.certificate_serial(), 1);
  identity.become(next);
  EXPECT_TRUE(eventually([&] { return RawClient(server.port(), {.tls = true}).certificate_serial() == 2; }));
  old.send(get_tls("/a"));
  EXPECT_EQ(old.read_answer().status, 200) << "a connection that is open goes on";
}

TEST(TransportTls, ABrokenNewCertificateKeepsTheOldOne) {
  std::mutex mutex;
  std::string remarks;
  set_log_sink([&](LogLevel, std::string_view message) {
    const std::lock_guard lock(mutex);
    remarks.append(message).append("\n");
  });
  const auto says = [&](std::string_view words) {
    return eventually([&] {
      const std::lock_guard lock(mutex);
      return remarks.find(words) != std::string::npos;
    });
  };
  {
    const SelfSigned identity(1), next(2);
    TransportOptions options = identity.options();
    options.tls_watch_interval = std::chrono::milliseconds(20);
    ToyServer server(options);
    std::ofstream(identity.certificate()) << "-----BEGIN CERTIFICATE-----\nhalf";
    EXPECT_TRUE(says("the certificate that was read before stays in use"));
    EXPECT_EQ(RawClient(server.port(), {.tls = true}).certificate_serial(), 1);
    identity.become(next);
    EXPECT_TRUE(says("read again"));
    EXPECT_EQ(RawClient(server.port(), {.tls = true}).certificate_serial(), 2);
    std::filesystem::remove(identity.key());
    EXPECT_TRUE(says("key.pem: No such file"));
    EXPECT_EQ(RawClient(server.port(), {.tls = true}).certificate_serial(), 2);
  }
  set_log_sink({});
}

TEST(TransportTls, BadFilesAreNamed) {
  const SelfSigned identity, other;
  const auto problem_of = [](const std::string& certificate, const std::string& key) {
    ToyApplication application;
    try {
      Transport transport({.tls_certificate = certificate, .tls_key = key}, application);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      return error.message().substr(0, error.message().find(':'));
    }
    return std::string("no error");
  };
  EXPECT_EQ(problem_of(identity.key(), identity.key()), "tls_certificate");
  EXPECT_EQ(problem_of(identity.certificate(), identity.certificate()), "tls_key");
  EXPECT_EQ(problem_of(identity.certificate(), identity.locked_key()), "tls_key");
  EXPECT_EQ(problem_of(identity.certificate(), other.key()), "tls_key");
  EXPECT_EQ(problem_of(identity.certificate(), identity.key()), "no error");
}

}  // namespace
}  // namespace shoal::server
