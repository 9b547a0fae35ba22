// A client for tests that sends exactly the bytes it is given, and reads answers by its own simple rules.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <map>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include "base/eventually_testing.h"

namespace shoal::server {

struct Answer {
  int status = 0;                             // 0: no answer
  std::map<std::string, std::string> fields;  // names in lower case
  std::string body;
  bool whole = false;  // up to its length or last chunk

  bool has(const std::string& name) const { return fields.contains(name); }
  std::string field(const std::string& name) const { return has(name) ? fields.at(name) : ""; }
};

class RawClient {
 public:
  struct Options {
    bool tls = false;
    bool v6 = false;
    int receive_buffer = 0;               // bytes; 0: the system's
    const char* tls12_ciphers = nullptr;  // TLS 1.2 with only these ciphers
  };
  explicit RawClient(uint16_t port) : RawClient(port, Options{}) {}
  RawClient(uint16_t port, Options options) {
    socket_ = ::socket(options.v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const timeval limit{20, 0};
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    if (options.receive_buffer > 0)
      setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &options.receive_buffer, sizeof options.receive_buffer);
    connected_ = connect_to(port, options.v6);
    if (connected_ && options.tls) start_tls(options.tls12_ciphers);
  }
  ~RawClient() { close(); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  bool connected() const { return connected_; }

  // False: the peer takes no more.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto sent = tls_ != nullptr ? SSL_write(tls_, bytes.data(), static_cast<int>(bytes.size()))
                                        : ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }

  // Exactly this many bytes; fewer when the connection ends.
  std::string read(size_t bytes) {
    while (received_.size() < bytes && receive()) {
    }
    return take(std::min(bytes, received_.size()));
  }
  // Up to and with the marker; what there is when the connection ends before.
  std::string read_until(std::string_view marker) {
    size_t at = received_.find(marker);
    while (at == std::string::npos && receive()) at = received_.find(marker);
    return take(at == std::string::npos ? received_.size() : at + marker.size());
  }
  std::string read_to_end() {
    while (receive()) {
    }
    return take(received_.size());
  }
  // The certificate's serial number; 0: no certificate.
  long certificate_serial() const {
    X509* certificate = tls_ == nullptr ? nullptr : SSL_get1_peer_certificate(tls_);
    if (certificate == nullptr) return 0;
    const long serial = ASN1_INTEGER_get(X509_get0_serialNumber(certificate));
    X509_free(certificate);
    return serial;
  }
  // The peer has ended the connection (an end, or a reset) without sending more.
  bool closed() { return received_.empty() && !receive() && ended_; }
  bool was_reset() const { return reset_; }

  Answer read_answer(bool to_head = false) {
    Answer answer;
    const std::string head = read_until("\r\n\r\n");
    if (!head.starts_with("HTTP/1.1 ") || !head.ends_with("\r\n\r\n")) return answer;
    answer.status = std::stoi(head.substr(9, 3));
    for (size_t at = head.find("\r\n") + 2; at + 2 < head.size();) {
      const size_t end = head.find("\r\n", at), colon = head.find(": ", at);
      std::string name = head.substr(at, colon - at);
      for (char& c : name) c = static_cast<char>(std::tolower(c));
      EXPECT_FALSE(answer.has(name)) << "twice: " << name;
      answer.fields[name] = head.substr(colon + 2, end - colon - 2);
      at = end + 2;
    }
    if (to_head || answer.status < 200 || answer.status == 204 || answer.status == 304)
      answer.whole = true;
    else
      read_body(answer);
    return answer;
  }

  void half_close() { shutdown(socket_, SHUT_WR); }
  void reset() {
    const linger now{1, 0};
    setsockopt(socket_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close();
  }
  void close() {
    if (tls_ != nullptr) {
      if (!reset_ && !ended_) SSL_shutdown(tls_);
      SSL_free(tls_);
      SSL_CTX_free(context_);
      tls_ = nullptr;
    }
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
  }

 private:
  bool connect_to(uint16_t port, bool v6) {
    if (v6) {
      sockaddr_in6 address{};
      address.sin6_family = AF_INET6;
      address.sin6_port = htons(port);
      address.sin6_addr = in6addr_loopback;
      return connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    }
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }

  void start_tls(const char* tls12_ciphers) {
    context_ = SSL_CTX_new(TLS_client_method());
    if (tls12_ciphers != nullptr) {
      SSL_CTX_set_max_proto_version(context_, TLS1_2_VERSION);
      EXPECT_EQ(SSL_CTX_set_cipher_list(context_, tls12_ciphers), 1) << tls12_ciphers;
    }
    tls_ = SSL_new(context_);
    SSL_set_fd(tls_, socket_);
    connected_ = SSL_connect(tls_) == 1;
  }

  // False: the connection has ended.
  bool receive() {
    if (ended_ || socket_ < 0) return false;
    char bytes[16384];
    const auto got =
        tls_ != nullptr ? SSL_read(tls_, bytes, sizeof bytes) : recv(socket_, bytes, sizeof bytes, 0);
    if (got > 0) {
      received_.append(bytes, static_cast<size_t>(got));
      return true;
    }
    reset_ = got < 0 && errno == ECONNRESET;
    ended_ = tls_ != nullptr || got == 0 || reset_;
    return false;
  }

  std::string take(size_t bytes) {
    if (bytes == received_.size()) return std::exchange(received_, {});
    std::string taken = received_.substr(0, bytes);
    received_.erase(0, bytes);
    return taken;
  }

  void read_body(Answer& answer) {
    if (answer.has("content-length")) {
      const size_t length = std::stoul(answer.field("content-length"));
      answer.body = read(length);
      answer.whole = answer.body.size() == length;
    } else if (answer.field("transfer-encoding") == "chunked") {
      read_chunks(answer);
    } else {
      answer.body = read_to_end();
      answer.whole = ended_ && !reset_;
    }
  }

  void read_chunks(Answer& answer) {
    for (;;) {
      const std::string line = read_until("\r\n");
      if (!line.ends_with("\r\n")) return;
      const size_t size = std::stoul(line, nullptr, 16);
      const std::string data = read(size + 2);
      if (data.size() < size + 2) {
        answer.body += data.substr(0, size);
        return;
      }
      EXPECT_EQ(data.substr(size), "\r\n");
      answer.body += data.substr(0, size);
      answer.whole = size == 0;
      if (answer.whole) return;
    }
  }

  int socket_ = -1;
  bool connected_ = false, ended_ = false, reset_ = false;
  SSL_CTX* context_ = nullptr;
  SSL* tls_ = nullptr;
  std::string received_;
};

}  // namespace shoal::server
