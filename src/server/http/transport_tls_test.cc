// HTTP under TLS.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <mutex>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "base/log.h"
#include "server/http/raw_client_testing.h"
#include "server/http/toy_application_testing.h"

namespace shoal::server {
namespace {

std::string get_tls(const std::string& target) { return "GET " + target + " HTTP/1.1\r\nHost: h\r\n\r\n"; }

// A key and the certificate that it has signed itself, in two files.
class SelfSigned {
 public:
  enum class Kind { elliptic, rsa };
  explicit SelfSigned(long serial = 1, Kind kind = Kind::elliptic)
      : folder_(std::filesystem::temp_directory_path() /
                ("shoal_tls_" + std::to_string(getpid()) + "_" + std::to_string(++count_))) {
    std::filesystem::create_directories(folder_);
    EVP_PKEY* key = kind == Kind::rsa ? EVP_RSA_gen(2048) : EVP_EC_gen("P-256");
    X509* x509 = X509_new();
    ASN1_INTEGER_set(X509_get_serialNumber(x509), serial);
    X509_gmtime_adj(X509_getm_notBefore(x509), 0);
    X509_gmtime_adj(X509_getm_notAfter(x509), 3600);
    X509_set_pubkey(x509, key);
    X509_NAME* name = X509_get_subject_name(x509);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("localhost"),
                               -1, -1, 0);
    X509_set_issuer_name(x509, name);
    X509_sign(x509, key, EVP_sha256());
    write(certificate(), [&](std::FILE* file) { PEM_write_X509(file, x509); });
    write(this->key(),
          [&](std::FILE* file) { PEM_write_PrivateKey(file, key, nullptr, nullptr, 0, nullptr, nullptr); });
    write(locked_key(), [&](std::FILE* file) {
      PEM_write_PrivateKey(file, key, EVP_aes_128_cbc(), reinterpret_cast<const unsigned char*>("word"), 4,
                           nullptr, nullptr);
    });
    X509_free(x509);
    EVP_PKEY_free(key);
  }
  ~SelfSigned() { std::filesystem::remove_all(folder_); }

  std::string certificate() const { return folder_ / "certificate.pem"; }
  std::string key() const { return folder_ / "key.pem"; }
  std::string locked_key() const { return folder_ / "locked_key.pem"; }
  // As certbot and Kubernetes do it: each file is replaced at once, one after the other.
  void become(const SelfSigned& other) const {
    replace(certificate(), other.certificate());
    replace(key(), other.key());
  }
  static void replace(const std::string& path, const std::string& with) {
    std::filesystem::copy_file(with, path + ".new", std::filesystem::copy_options::overwrite_existing);
    std::filesystem::rename(path + ".new", path);
  }

 private:
  template <typename Write>
  static void write(const std::string& path, Write write_to) {
    std::FILE* file = std::fopen(path.c_str(), "w");
    write_to(file);
    std::fclose(file);
  }

  static inline int count_ = 0;
  std::filesystem::path folder_;
};

TransportOptions secure(const SelfSigned& identity) {
  TransportOptions options;
  options.threads = 2;
  options.tls_certificate = identity.certificate();
  options.tls_key = identity.key();
  return options;
}

TEST(TransportTls, AnswersStreamsAndPipelines) {
  const SelfSigned identity;
  ToyServer server(secure(identity));
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
  ToyServer server(secure(identity));
  RawClient client(server.port(), {.tls = true});
  client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4000000\r\n\r\n" + std::string(4'000'000, 'x'));
  EXPECT_EQ(client.read_answer().status, 413);
  EXPECT_TRUE(client.closed());
}

TEST(TransportTls, ClientsThatLeaveAreNoticed) {
  const SelfSigned identity;
  ToyServer server(secure(identity));
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
  TransportOptions options = secure(identity);
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
  ToyServer server(secure(identity));
  RawClient client(server.port(), {.tls = true});
  client.send(get_tls("/a"));
  EXPECT_EQ(client.read_answer().status, 200);
  EXPECT_TRUE(server.transport.drain(std::chrono::milliseconds(10'000)));
  EXPECT_TRUE(client.closed());
}

TEST(TransportTls, Tls12UsesOnlyForwardSecretAuthenticatedCiphers) {
  const SelfSigned rsa(1, SelfSigned::Kind::rsa);
  ToyServer server(secure(rsa));
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
  TransportOptions options = secure(identity);
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
    TransportOptions options = secure(identity);
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
