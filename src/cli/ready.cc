// shoal ready: asks a server whether it takes requests, for health checks where there is no other program.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <poll.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/printable.h"
#include "cli/cli.h"
#include "cli/integer_option.h"
#include "fleet/address.h"
#include "fleet/probe.h"
#include "shoal/settings.h"

namespace shoal::cli {
namespace {

struct ReadyOptions {
  std::string address;
  int timeout_ms = 2000;
};

// Where the server of these settings is asked without TLS.
std::string listening_address() {
  SettingSources sources = process_settings({}, "");
  sources.platform = platform_environment();
  const ServerConfig server = resolve_settings(sources).server;
  if (server.tls_certificate.empty()) return server.listen;
  if (!server.operator_listen.empty()) return server.operator_listen;
  fail(ErrorCode::unsupported,
       "the server speaks TLS, which `shoal ready` does not: set operator_listen, or "
       "ask its /ready with another program");
}

// A server that listens on all addresses of this machine is asked on its own.
fleet::Target target_of(std::string address) {
  for (const char* all : {"0.0.0.0:", "[::]:", "localhost:"})
    if (address.starts_with(all)) address = "127.0.0.1:" + address.substr(std::string_view(all).size());
  const auto parsed = fleet::parse_address(address);
  if (!parsed || parsed->port == 0)
    fail(ErrorCode::invalid_argument, "address ", printable(address),
         ": expected an IPv4 address and a port, as in 127.0.0.1:8080");
  return {.host = parsed->host, .port = parsed->port, .socket = {}};
}

fleet::CheckResult ask(const fleet::Target& target, int timeout_ms) {
  fleet::Probe probe;
  const int64_t deadline_us = now_us() + int64_t{timeout_ms} * 1000;
  probe.begin(target, deadline_us);
  for (;;) {
    if (probe.socket() < 0) return fleet::CheckResult::silent;
    if (const auto result = probe.go_on(now_us())) return *result;
    pollfd waiting{probe.socket(), probe.events(), 0};
    poll(&waiting, 1, static_cast<int>(std::max<int64_t>(1, (deadline_us - now_us()) / 1000 + 1)));
  }
}

void run_ready(const ReadyOptions& options) {
  const std::string address = options.address.empty() ? listening_address() : options.address;
  switch (ask(target_of(address), options.timeout_ms)) {
    case fleet::CheckResult::ready:
      std::printf("ready\n");
      return;
    case fleet::CheckResult::unready:
      fail(ErrorCode::unavailable, "the server at ", printable(address),
           " is not ready: its /ready tells its state");
    case fleet::CheckResult::silent:
      fail(ErrorCode::unavailable, "no answer from ", printable(address), " (waited for at most ",
           options.timeout_ms, " ms)");
  }
}

}  // namespace

void add_ready(CLI::App& app) {
  auto* ready = app.add_subcommand("ready", "Ask a server whether it takes requests; the exit code tells");
  auto options = std::make_shared<ReadyOptions>();
  ready->add_option("address", options->address, "IPv4 address and port; default: the setting listen");
  add_integer(*ready, "--timeout-ms", {1, 600'000}, store_in(options->timeout_ms), "for the answer")
      ->capture_default_str();
  ready->footer(
      "0: ready; 1: not ready, or no answer; 2: no address. Examples:\n"
      "  shoal ready\n"
      "  shoal ready 127.0.0.1:8001 --timeout-ms 500");
  ready->callback([options] { run_ready(*options); });
}

}  // namespace shoal::cli
