// shoal ready: asks a server whether it takes requests, for health checks where there is no other program.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>

#include "base/error.h"
#include "base/printable.h"
#include "cli/cli.h"
#include "cli/integer_option.h"
#include "fleet/address.h"
#include "server/http/fetch.h"
#include "shoal/settings.h"

namespace shoal::cli {
namespace {

struct ReadyOptions {
  std::string address;
  bool tls = false;
  int timeout_ms = 2000;
};

// A server that listens on all addresses of this machine is asked on its own.
server::Peer peer_at(std::string address) {
  for (const char* all : {"0.0.0.0:", "[::]:", "localhost:"})
    if (address.starts_with(all)) address = "127.0.0.1:" + address.substr(std::string_view(all).size());
  const auto parsed = fleet::parse_address(address);
  if (!parsed || parsed->port == 0)
    fail(ErrorCode::invalid_argument, "address ", printable(address),
         ": expected an IPv4 address and a port, as in 127.0.0.1:8080");
  return {.host = parsed->host, .port = static_cast<uint16_t>(parsed->port)};
}

// The server of these settings, which may speak TLS.
server::Peer configured_server() {
  SettingSources sources = process_settings({}, "");
  sources.platform = platform_environment();
  const ServerConfig server = resolve_settings(sources).server;
  server::Peer peer = peer_at(server.listen);
  peer.tls = !server.tls_certificate.empty();
  return peer;
}

void run_ready(const ReadyOptions& options) {
  server::Peer peer = options.address.empty() ? configured_server() : peer_at(options.address);
  peer.tls = peer.tls || options.tls;
  const std::string where = concat(peer.host, ":", peer.port);
  const auto answer =
      server::fetch_and_wait(peer, "/ready", {}, std::chrono::milliseconds(options.timeout_ms));
  if (!answer)
    fail(ErrorCode::unavailable, "no answer from ", printable(where), peer.tls ? " by TLS" : "",
         " (waited for at most ", options.timeout_ms, " ms)");
  constexpr int kOk = 200;
  if (answer->status != kOk)
    fail(ErrorCode::unavailable, "the server at ", printable(where),
         " is not ready: its /ready tells its state");
  std::printf("ready\n");
}

}  // namespace

void add_ready(CLI::App& app) {
  auto* ready = app.add_subcommand("ready", "Ask a server whether it takes requests; the exit code tells");
  auto options = std::make_shared<ReadyOptions>();
  ready->add_option("address", options->address, "IPv4 address and port; default: the setting listen");
  ready->add_flag("--tls", options->tls,
                  "ask by TLS, without a check of the certificate; default: as the settings have it");
  add_integer(*ready, "--timeout-ms", {1, 600'000}, store_in(options->timeout_ms), "for the answer")
      ->capture_default_str();
  ready->footer(
      "0: ready; 1: not ready, or no answer; 2: no address. Examples:\n"
      "  shoal ready\n"
      "  shoal ready 127.0.0.1:8001 --timeout-ms 500");
  ready->callback([options] { run_ready(*options); });
}

}  // namespace shoal::cli
