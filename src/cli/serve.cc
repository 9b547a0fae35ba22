// shoal serve: the HTTP server.
#include <CLI/CLI.hpp>
#include <iostream>
#include <optional>

#include "base/error.h"
#include "cli/cli.h"
#include "cli/engine_settings.h"
#include "cli/fleet_memory.h"
#include "cli/fleet_run.h"
#include "cli/fleet_settings.h"
#include "cli/help.h"
#include "cli/host_and_port.h"
#include "cli/integer_option.h"
#include "cli/server_run.h"

namespace shoal::cli {
namespace {

void serve(const EngineSettings& settings, bool print_need) {
  const ResolvedSettings resolved = settings.resolve();
  if (settings.wants_print())
    std::cout << print_settings(resolved);
  else if (print_need)
    print_memory_need(resolved);
  else
    run_server(settings, resolved);
}

constexpr const char* kFleetHeading = "Several workers (`shoal fleet` has more)";

// What tools around older servers call the options of `shoal fleet`.
struct ServeCommand {
  EngineSettings settings;
  int base_port = 8001, stagger_s = 60;
  bool with_balancer = false;
  std::string strategy;     // empty: as `shoal fleet` has it
  bool print_need = false;  // for `shoal fleet` alone
};

void add_fleet_options(CLI::App& command, ServeCommand& asked) {
  add_integer(command, "--base-port", {1, 65535}, store_in(asked.base_port),
              "with --workers N: port of the first worker on 127.0.0.1; each further one has the next")
      ->default_str("8001")
      ->group(kFleetHeading);
  command
      .add_flag("--with-balancer", asked.with_balancer,
                "with --workers N: HAProxy in front of them, at --listen or 127.0.0.1:8000")
      ->group(kFleetHeading);
  command
      .add_option("--strategy", asked.strategy,
                  "with --with-balancer: who gets a request: least-connections, round-robin or voice")
      ->type_name("TEXT")
      ->group(kFleetHeading);
  add_integer(command, "--stagger-start", {0, 3600}, store_in(asked.stagger_s),
              "with --workers N: a worker starts when the one before is ready, or after so many seconds")
      ->default_str("60")
      ->group(kFleetHeading);
}

std::optional<std::string> given(const CLI::App& command, const char* flag) {
  const CLI::Option* option = command.get_option(flag);
  if (option->count() == 0) return std::nullopt;
  return option->results().back();
}

// What --listen, or --host and --port, say.
std::optional<std::string> address_of(const CLI::App& command, const std::string& otherwise) {
  if (const auto listen = given(command, "--listen")) return listen;
  const std::optional<std::string> host = given(command, "--host"), port = given(command, "--port");
  if (!host && !port) return std::nullopt;
  return HostAndPort{host.value_or(""), port.value_or("")}.listen(otherwise);
}

std::string devices_of(const std::string& device) {
  // The engine's name for the first GPU, or any; auto gives the workers every GPU.
  return device == "cuda" ? "auto" : device;
}

// Whether one server was asked for; a text that is no number is for the settings to refuse.
bool wants_one(const CLI::App& command) {
  for (const char* flag : {"--base-port", "--with-balancer", "--stagger-start", "--strategy"})
    if (command.get_option(flag)->count() > 0) return false;
  const std::string workers = given(command, "--workers").value_or("1");
  return workers == "1" || workers.find_first_not_of("0123456789") != std::string::npos || workers == "0";
}

void serve_with_workers(const CLI::App& command, const ServeCommand& asked) {
  FleetCommand fleet{.stagger_s = asked.stagger_s, .balancer = asked.with_balancer ? "haproxy" : "none"};
  fleet.request.base_port = asked.base_port;
  fleet.request.workers = static_cast<int>(
      parse_integer("workers", given(command, "--workers").value_or("1"), {1, kMostWorkers}));
  fleet.request.devices = devices_of(given(command, "--device").value_or("auto"));
  const std::optional<std::string> listen = address_of(command, fleet.listen);
  if (listen && !asked.with_balancer)
    fail(ErrorCode::invalid_argument,
         "listen: workers have ports from base_port on; with_balancer gives them one address");
  if (listen) fleet.listen = *listen;
  if (!asked.strategy.empty() && !asked.with_balancer)
    fail(ErrorCode::invalid_argument, "strategy: is that of a balancer; expected with_balancer, too");
  if (!asked.strategy.empty()) fleet.strategy = asked.strategy;
  run_fleet_command(fleet, given_options(command, {"workers", "base-port", "with-balancer", "stagger-start",
                                                   "strategy", "listen", "host", "port", "device"}));
}

}  // namespace

void add_serve(CLI::App& app) {
  auto asked = std::make_shared<ServeCommand>();
  CLI::App& command = *app.add_subcommand(
      "serve", "Serve speech over HTTP (OpenAI, Fish-Speech and Kokoro-FastAPI clients, web page)");
  command.footer(
      "Examples:\n"
      "  shoal serve                                    the built-in voice on http://127.0.0.1:8080\n"
      "  shoal serve --model checkpoints/openaudio-s1-mini --listen 0.0.0.0:8080 --api-key-file keys\n"
      "  shoal serve --models kokoro=checkpoints/Kokoro-82M       two models; a request's model chooses\n"
      "  curl -s http://127.0.0.1:8080/v1/audio/speech -H 'content-type: application/json' \\\n"
      "       -d '{\"model\": \"shoal\", \"input\": \"Hello there.\", \"voice\": \"default\"}' -o hello.mp3");
  asked->settings.add_to(command, EngineSettings::Scope::server);
  asked->settings.mind_platform();
  add_fleet_options(command, *asked);
  command.add_flag(kPrintNeed, asked->print_need)->group("");
  command.callback([asked, &command] {
    if (wants_one(command))
      serve(asked->settings, asked->print_need);
    else
      serve_with_workers(command, *asked);
  });
  show_first(command, {"--model", "--models", "--device", "--listen", "--host", "--port", "--references-dir",
                       "--voice-aliases", "--api-key-file", "--max-concurrency", "--workers", "--log-level",
                       "--config", "--print-config"});
}

}  // namespace shoal::cli
