// A server whose timing is known: it answers by a script, and notes when it sent what.
#pragma once

#include <arpa/inet.h>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace shoal::load {

// Waits, then sends. No bytes: closes the connection.
struct ScriptStep {
  int64_t wait_ms = 0;
  std::string bytes;
};
using Script = std::vector<ScriptStep>;

class FakeServer {
 public:
  // `script_of` gets the number of the request, from 0 in the order of arrival. `tls`: nullptr for plain
  // connections; outlives this.
  explicit FakeServer(std::function<Script(int)> script_of, SSL_CTX* tls = nullptr)
      : script_of_(std::move(script_of)), tls_(tls) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{.sin_family = AF_INET};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address);
    listen(listener_, 4096);
    getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    accepting_ = std::thread([this] { accept_all(); });
  }
  ~FakeServer() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    stops_.notify_all();
    shutdown(listener_, SHUT_RDWR);
    accepting_.join();
    {
      const std::lock_guard lock(mutex_);
      for (const int socket : sockets_) shutdown(socket, SHUT_RDWR);
    }
    for (std::thread& thread : threads_) thread.join();
    for (const int socket : sockets_) close(socket);
    close(listener_);
  }
  FakeServer(const FakeServer&) = delete;
  FakeServer& operator=(const FakeServer&) = delete;

  std::string url() const {
    return (tls_ != nullptr ? "https" : "http") + ("://127.0.0.1:" + std::to_string(port_));
  }
  // When the step of this number of the request was sent, by now_us().
  int64_t sent_us(int request, size_t step) const {
    const std::lock_guard lock(mutex_);
    return sent_us_.at(static_cast<size_t>(request)).at(step);
  }
  // The requests as they came, in the order of arrival.
  std::vector<std::string> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  int connections() const { return connections_; }

 private:
  bool stops_within(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    return stops_.wait_for(lock, time, [this] { return stopping_.load(); });
  }

  void accept_all() {
    for (;;) {
      const int socket = accept(listener_, nullptr, nullptr);
      if (socket < 0 || stopping_) {
        if (socket >= 0) close(socket);
        return;
      }
      const int yes = 1;
      setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
      ++connections_;
      const std::lock_guard lock(mutex_);
      sockets_.push_back(socket);
      threads_.emplace_back([this, socket] { serve(socket); });
    }
  }

  void serve(int socket) {
    SSL* ssl = tls_ == nullptr ? nullptr : SSL_new(tls_);
    if (ssl != nullptr) SSL_set_fd(ssl, socket);
    if (ssl == nullptr || SSL_accept(ssl) == 1) {
      while (read_request(socket, ssl) && answer(socket, ssl)) {
      }
    }
    shutdown(socket, SHUT_RDWR);
    SSL_free(ssl);
  }

  bool read_request(int socket, SSL* ssl) {
    std::string text;
    char bytes[4096];
    for (;;) {
      const size_t head = text.find("\r\n\r\n");
      if (head != std::string::npos) {
        const size_t length = std::stoul(text.substr(text.find("Content-Length: ") + 16));
        if (text.size() >= head + 4 + length) {
          const std::lock_guard lock(mutex_);
          requests_.push_back(std::move(text));
          return true;
        }
      }
      const auto got =
          ssl != nullptr ? SSL_read(ssl, bytes, sizeof bytes) : recv(socket, bytes, sizeof bytes, 0);
      if (got <= 0) return false;
      text.append(bytes, static_cast<size_t>(got));
      if (text.front() != 'P') return false;  // no POST
    }
  }

  bool answer(int socket, SSL* ssl) {
    int number = 0;
    {
      const std::lock_guard lock(mutex_);
      number = static_cast<int>(sent_us_.size());
      sent_us_.emplace_back();
    }
    for (const ScriptStep& step : script_of_(number)) {
      if (stops_within(std::chrono::milliseconds(step.wait_ms)) || step.bytes.empty()) return false;
      const int64_t now = now_us();
      const auto size = step.bytes.size();
      const auto sent = ssl != nullptr ? SSL_write(ssl, step.bytes.data(), static_cast<int>(size))
                                       : send(socket, step.bytes.data(), size, MSG_NOSIGNAL);
      if (sent != static_cast<int64_t>(size)) return false;
      const std::lock_guard lock(mutex_);
      sent_us_[static_cast<size_t>(number)].push_back(now);
    }
    return true;
  }

  const std::function<Script(int)> script_of_;
  SSL_CTX* const tls_;
  int listener_ = -1;
  uint16_t port_ = 0;
  std::atomic<bool> stopping_ = false;
  std::condition_variable stops_;
  std::atomic<int> connections_ = 0;
  mutable std::mutex mutex_;
  std::vector<int> sockets_;
  std::vector<std::thread> threads_;
  std::vector<std::string> requests_;
  std::vector<std::vector<int64_t>> sent_us_;  // of each request, of each step
  std::thread accepting_;
};

}  // namespace shoal::load
