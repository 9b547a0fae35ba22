#include "fleet/balancer.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

#include "base/error.h"
#include "base/printable.h"
#include "fleet/log_lines.h"

namespace shoal::fleet {
namespace {

constexpr int kLastBalancerPort = 65535;
constexpr const char* kLoopback = "127.0.0.1";

// fd-hard-limit: HAProxy reserves memory for every descriptor that it may open, and containers often allow a
// billion. Its own buffers hold a request until the answer begins: what fits can be sent again.
std::string globals(const BalancerPlan& plan) {
  const std::string socket = plan.runtime_socket.empty() ? ""
                                                         : concat("    stats socket ", plan.runtime_socket,
                                                                  " mode 600 level admin\n");
  return concat(
      "global\n"
      "    nbthread 1\n"
      "    fd-hard-limit 65536\n"
      "    tune.bufsize ",
      kRepeatableBytes, "\n", socket, "    hard-stop-after ", plan.grace_s,
      "s\n"
      "\n"
      "defaults\n"
      "    mode http\n"
      "    timeout connect 2s\n"
      "    timeout client 75s\n"
      "    timeout server ",
      plan.longest_answer_s,
      "s\n"
      "    timeout tunnel 1h\n"
      "    timeout http-request 60s\n"
      "    timeout http-keep-alive 75s\n"
      "    timeout check 1s\n"
      "    http-error status 503 content-type application/json string '{\"error\":{\"message\":\"no worker "
      "is ready\","
      "\"type\":\"server_error\",\"param\":null,\"code\":\"unavailable\"}}'\n");
}

std::string frontend(const BalancerPlan& plan) {
  std::string text = concat("\nfrontend speech\n    bind ", plan.host, ":", plan.port, "\n");
  // The supervisor asks there whether it answers.
  if (plan.host != kLoopback && plan.host != "0.0.0.0")
    text += concat("    bind ", kLoopback, ":", plan.port, "\n");
  text +=
      "    acl is_ready nbsrv(workers) ge 1\n"
      "    monitor-uri /ready\n"
      "    monitor fail if !is_ready\n";
  if (plan.strategy == Strategy::voice)
    text +=
        "    option http-buffer-request\n"
        "    http-request set-var(txn.voice) req.hdr(x-shoal-voice)\n"
        "    http-request set-var(txn.voice) req.body,json_query('$.voice') if !{ var(txn.voice) -m found }\n"
        "    http-request set-var(txn.voice) req.body,json_query('$.reference_id') if !{ var(txn.voice) -m "
        "found }\n";
  return text + "    default_backend workers\n";
}

const char* balance(Strategy strategy) {
  switch (strategy) {
    case Strategy::least_connections:
      return "    balance leastconn\n";
    case Strategy::round_robin:
      return "    balance roundrobin\n";
    case Strategy::voice:
      return "    balance hash var(txn.voice)\n"
             "    hash-type consistent\n"
             "    hash-balance-factor 125\n";
  }
  return "";
}

std::string backend(const BalancerPlan& plan) {
  std::string text = concat("\nbackend workers\n", balance(plan.strategy),
                            "    option httpchk GET /ready\n"
                            "    http-check expect status 200\n"
                            "    http-reuse never\n"
                            "    retry-on conn-failure empty-response 503\n"
                            "    retries 3\n"
                            "    option redispatch 1\n"
                            "    acl may_repeat path /v1/audio/speech /v1/tts /v1/tts/batch /invocations "
                            "/v1/vqgan/encode /v1/vqgan/decode /dev/captioned_speech /dev/dialogue /dev/ssml "
                            "/dev/generate_from_phonemes /dev/phonemize\n"
                            "    http-request disable-l7-retry if !METH_GET !may_repeat\n"
                            "    default-server check inter 500ms fall 2 rise 1\n");
  for (const WorkerPlan& worker : plan.workers)
    text += concat("    server ", worker.name, " ", kLoopback, ":", worker.port, "\n");
  return text;
}

bool can_execute(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored) && access(path.c_str(), X_OK) == 0;
}

}  // namespace

Strategy parse_strategy(std::string_view name) {
  if (name == "least-connections") return Strategy::least_connections;
  if (name == "round-robin") return Strategy::round_robin;
  if (name == "voice") return Strategy::voice;
  fail(ErrorCode::invalid_argument, "strategy: expected least-connections, round-robin or voice, got \"",
       printable(name), "\"");
}

void parse_balancer_address(const std::string& listen, BalancerPlan& plan) {
  const size_t colon = std::min(listen.rfind(':'), listen.size());
  const std::string host = listen.substr(0, colon),
                    number = listen.substr(std::min(colon + 1, listen.size()));
  in_addr address;
  int port = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), port);
  const bool has_port =
      error == std::errc{} && end == number.data() + number.size() && port > 0 && port <= kLastBalancerPort;
  if (!has_port || inet_pton(AF_INET, host.c_str(), &address) != 1)
    fail(ErrorCode::invalid_argument,
         "listen: expected an IPv4 address and a port, as in 127.0.0.1:8000, got \"", printable(listen),
         "\"");
  plan.host = host;
  plan.port = port;
}

std::string haproxy_config(const BalancerPlan& plan) {
  return globals(plan) + frontend(plan) + backend(plan);
}

std::string find_haproxy(const std::string& name) {
  const bool is_path = name.find('/') != std::string::npos;
  if (is_path && can_execute(name)) return name;
  const char* listed = std::getenv("PATH");
  // Debian installs it where a user's path does not lead.
  std::string folders = concat(listed == nullptr ? "" : listed, ":/usr/local/sbin:/usr/sbin:");
  for (size_t end = folders.find(':'); !is_path && end != std::string::npos; end = folders.find(':')) {
    const std::string folder = folders.substr(0, end);
    folders.erase(0, end + 1);
    if (!folder.empty() && can_execute(concat(folder, "/", name))) return concat(folder, "/", name);
  }
  fail(ErrorCode::invalid_argument, "haproxy: \"", printable(name),
       "\" is not there or cannot be executed; install it (Debian: apt-get install haproxy), or leave "
       "balancing to "
       "others with --balancer none");
}

Balancer::Balancer(std::string program, const std::string& config)
    : program_(std::move(program)), file_(memfd_create("haproxy.cfg", MFD_CLOEXEC)) {
  size_t written = 0;
  while (file_ >= 0 && written < config.size()) {
    const ssize_t count = write(file_, config.data() + written, config.size() - written);
    if (count <= 0) break;
    written += static_cast<size_t>(count);
  }
  try {
    if (written < config.size())
      fail(ErrorCode::io, "no file in memory for the balancer's configuration: ", std::strerror(errno));
    check();
  } catch (...) {
    if (file_ >= 0) close(file_);
    throw;
  }
}

Balancer::~Balancer() { close(file_); }

Command Balancer::command() const {
  return {.program = program_, .arguments = {"-db", "-f", concat("/proc/", getpid(), "/fd/", file_)}};
}

void Balancer::check() const {
  constexpr int kPatience_ms = 10'000, kLook_ms = 10;
  Command command = this->command();
  command.arguments.push_back("-c");
  Child child(command);
  for (int waited_ms = 0; !child.poll() && waited_ms < kPatience_ms; waited_ms += kLook_ms)
    std::this_thread::sleep_for(std::chrono::milliseconds(kLook_ms));
  if (child.poll() && child.poll()->exit_code == 0) return;
  char bytes[4096];
  const ssize_t count = read(child.output(), bytes, sizeof bytes);
  LogLines lines;
  std::vector<std::string> words = lines.add({bytes, static_cast<size_t>(std::max<ssize_t>(count, 0))});
  // Notices of its version come first.
  std::erase_if(words, [](const std::string& line) { return line.find("[ALERT]") == std::string::npos; });
  fail(ErrorCode::invalid_argument, "haproxy: ", program_, " does not accept the configuration: ",
       !words.empty() ? printable(words.front())
       : child.poll() ? to_words(*child.poll())
                      : std::string("no answer"));
}

}  // namespace shoal::fleet
