#include "fleet/probe.h"

#include <arpa/inet.h>
#include <cerrno>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

#include "base/clock.h"

namespace shoal::fleet {
namespace {

constexpr int64_t kShort_us = 200'000, kLong_us = 20'000'000;

// Listens on a port of its own and gives `answer` to one connection, in two pieces; with none it accepts
// nobody.
class OneAnswer {
 public:
  explicit OneAnswer(const std::string& answer) : listener_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{.sin_family = AF_INET};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener_, 1), 0);
    getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    if (!answer.empty()) thread_ = std::thread([this, answer] { give(answer); });
  }
  ~OneAnswer() {
    if (thread_.joinable()) thread_.join();
    close(listener_);
  }
  int port() const { return port_; }

 private:
  void give(const std::string& answer) const {
    const int connection = accept(listener_, nullptr, nullptr);
    char request[4096];
    EXPECT_GT(recv(connection, request, sizeof request, 0), 0);
    EXPECT_GT(send(connection, answer.data(), 5, MSG_NOSIGNAL), 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_GT(send(connection, answer.data() + 5, answer.size() - 5, MSG_NOSIGNAL), 0);
    close(connection);
  }

  int listener_, port_ = 0;
  std::thread thread_;
};

CheckResult probe_of(int port, int64_t patience_us) {
  Probe probe;
  probe.begin({.port = port}, now_us() + patience_us);
  while (true) {
    if (const auto result = probe.go_on(now_us())) return *result;
    pollfd event{.fd = probe.socket(), .events = probe.events()};
    poll(&event, 1, 10);
  }
}

CheckResult probe_of_answer(const std::string& answer, int64_t patience_us = kLong_us) {
  const OneAnswer server(answer);
  return probe_of(server.port(), patience_us);
}

TEST(Probe, ReadsTheStatus) {
  EXPECT_EQ(probe_of_answer("HTTP/1.1 200 OK\r\n\r\n"), CheckResult::ready);
  EXPECT_EQ(probe_of_answer("HTTP/1.1 503 Service Unavailable\r\n\r\n"), CheckResult::unready);
}

TEST(Probe, NoAnswerAndNoHttpAreSilence) {
  EXPECT_EQ(probe_of_answer("", kShort_us), CheckResult::silent);
  EXPECT_EQ(probe_of_answer("SSH-2.0-OpenSSH_9.2p1\r\n"), CheckResult::silent);
  EXPECT_EQ(probe_of_answer("HTTP/1.1 2"), CheckResult::silent);
}

TEST(Probe, APortWithoutAListenerIsSilentAndFree) {
  int port = 0;
  {
    const OneAnswer server("");
    port = server.port();
    EXPECT_EQ(error_of_port(port), EADDRINUSE);
  }
  EXPECT_EQ(error_of_port(port), 0);
  EXPECT_EQ(probe_of(port, kLong_us), CheckResult::silent);
}

}  // namespace
}  // namespace shoal::fleet
