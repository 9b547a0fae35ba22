// shoal fleet: several `shoal serve` on this machine.
#include <CLI/CLI.hpp>

#include "cli/cli.h"
#include "cli/fleet_run.h"
#include "cli/integer_option.h"

namespace shoal::cli {
namespace {

// Options of what stands in front of the workers.
void add_balancer_options(CLI::App& command, FleetCommand& asked) {
  command.add_option("--balancer", asked.balancer, "haproxy; none: balancing is left to others")
      ->type_name("TEXT")
      ->capture_default_str();
  // As `shoal serve --workers` has it: here it is so anyway.
  command.add_flag("--with-balancer")->excludes("--balancer")->group("");
  command.add_option("--listen", asked.listen, "IPv4 address and port of the balancer")
      ->type_name("TEXT")
      ->capture_default_str();
  command
      .add_option("--strategy", asked.strategy, "who gets a request: least-connections, round-robin or voice")
      ->type_name("TEXT")
      ->capture_default_str();
  add_integer(
      command, "--queue-limit", {0, 1 << 20}, store_in(asked.queue_limit),
      "requests at all workers at once, waiting ones included; one more to speak gets 429; 0: as many as "
      "the workers take")
      ->default_str("0");
  command
      .add_option("--hosts", asked.hosts,
                  "file of workers on other machines, read again on SIGHUP (docs/FLEET.md)")
      ->type_name("FILE");
  command.add_option("--haproxy", asked.haproxy, "the program")->type_name("FILE")->capture_default_str();
  command.add_flag("--print-haproxy", asked.print_haproxy,
                   "print the balancer's configuration and do nothing else");
}

}  // namespace

void add_fleet(CLI::App& app) {
  auto asked = std::make_shared<FleetCommand>();
  CLI::App& command = *app.add_subcommand(
      "fleet",
      "Run several `shoal serve` on this machine behind one address, and restart those that end or hang");
  command.footer(
      "Every other option is one of `shoal serve` and holds for all workers (docs/FLEET.md).\n"
      "Examples:\n"
      "  shoal fleet --model checkpoints/openaudio-s1-mini        a worker on every GPU: ports 8001, 8002, "
      "...\n"
      "  shoal fleet --devices cpu --per-device 2                 two, each on half of the CPUs");
  command
      .add_option("--devices", asked->request.devices,
                  "cpu or cuda:N with commas between; auto: every GPU, without one the CPU")
      ->type_name("TEXT")
      ->capture_default_str();
  add_integer(command, "--per-device", {1, kMostWorkers}, store_in(asked->request.per_device),
              "workers on each device; those on the CPU share out its cores")
      ->default_str("1");
  add_integer(command, "--workers", {0, kMostWorkers}, store_in(asked->request.workers),
              "workers in all, spread over the devices; default: as per_device says; 0: none but --hosts");
  add_integer(command, "--base-port", {1, 65535}, store_in(asked->request.base_port),
              "port of the first worker on 127.0.0.1; each further one has the next")
      ->default_str("8001");
  add_integer(command, "--stagger-start", {0, 3600}, store_in(asked->stagger_s),
              "a worker starts when the one before is ready, or after so many seconds")
      ->default_str("60");
  add_balancer_options(command, *asked);
  command.allow_extras();
  command.callback([asked, &command] { run_fleet_command(*asked, command.remaining()); });
}

}  // namespace shoal::cli
