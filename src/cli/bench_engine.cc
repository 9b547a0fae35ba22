// shoal bench engine: many users at once, in one process.
#include "cli/bench_engine.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "bench/speech/random_models.h"
#include "cli/integer_option.h"
#include "cli/load_run.h"
#include "cli/number_option.h"

namespace shoal::cli {
namespace {

constexpr IntegerRange kUsers{1, 1 << 16}, kRequests{0, 1'000'000'000};

void add_load_options(CLI::App& command, LoadOptions& o) {
  const char* const load = "Load";
  CLI::Option* concurrency = add_integers(command, "--concurrency", kUsers, o.concurrency,
                                          "closed loop: users at a time, one level for each number")
                                 ->default_str("1,2,4,8")
                                 ->group(load);
  add_number(command, "--rate", {}, store_number_in(o.rate_per_s),
             "open loop instead: requests a second, arriving at random")
      ->excludes(concurrency)
      ->group(load);
  add_integer(command, "--requests", kRequests, store_in(o.requests),
              "of each level; default: four for each user, 8 at least")
      ->group(load);
  add_number(command, "--duration", {}, store_number_in(o.duration_s),
             "seconds in which a level submits; default of --rate: 30")
      ->group(load);
  command
      .add_option("--listen", o.listen, "fast: read as fast as one can; real-time: read what has been played")
      ->check(one_of({"fast", "real-time"}))
      ->capture_default_str()
      ->group(load);
  add_integer(command, "--warm-up-requests", kRequests, store_in(o.warm_up_requests),
              "before each level, not measured; default: one for each user, 4 with --rate")
      ->group(load);
  add_integer(command, "--seed", {}, store_in(o.seed), "of arrivals, texts, voices and speech")
      ->default_str("1")
      ->group(load);
}

void add_workload_options(CLI::App& command, LoadOptions& o) {
  const char* const workload = "Workload";
  command
      .add_option("--random", o.random,
                  "random weights of these sizes instead of a model: " + bench::list_of_random_benches())
      ->check(one_of(bench::names_of_random_benches()))
      ->group(workload);
  command
      .add_option("--texts", o.texts, "file with a text on each line; default: sentences of several lengths")
      ->type_name("FILE")
      ->group(workload);
  command.add_option("--frames", o.frames, "frames of a request, N or N-M; default: as the model ends")
      ->type_name("N[-M]")
      ->group(workload);
  command
      .add_option("--phonemes", o.phonemes,
                  "of a request to a Kokoro model, N or N-M, about 3 frames of 25 ms each; default: 20-300")
      ->type_name("N[-M]")
      ->group(workload);
  add_integer(command, "--voices", {0, 10'000}, store_in(o.voices),
              "synthetic reference voices; 0: the model's own voice")
      ->default_str("0")
      ->group(workload);
  add_number(command, "--voice-seconds", {}, store_number_in(o.voice_seconds), "length of each voice's clip")
      ->default_str("5")
      ->group(workload);
  add_number(command, "--shared-voice", {}, store_number_in(o.shared_voice),
             "share of requests, 0 to 1, that use the first voice; default: all voices evenly")
      ->group(workload);
}

}  // namespace

void add_bench_engine(CLI::App& bench) {
  auto options = std::make_shared<LoadOptions>();
  CLI::App& command =
      *bench.add_subcommand("engine", "Load an engine with many users and measure what they meet");
  command.footer(
      "Levels follow one another in one engine and never repeat a request, but share its prefix cache.\n"
      "Examples:\n"
      "  shoal bench engine --concurrency 1,2,4,8\n"
      "  shoal bench engine --random s1-mini --frames 64 --voices 10 --concurrency 1,4,16 --json "
      "report.json\n"
      "  shoal bench engine --random s1-mini --device cuda --max-batch-size 256 --frames 200 "
      "--concurrency 1,64,256\n"
      "  shoal bench engine --random kokoro --phonemes 20-300 --concurrency 1,4,16\n"
      "  shoal bench engine --rate 5 --duration 60 --listen real-time");
  add_load_options(command, *options);
  add_workload_options(command, *options);
  options->settings.add_to(command);
  command.add_flag("--limits", options->limits, "measure the machine's limits first");
  command.add_option("--json", options->json, "write the figures as JSON; - prints them instead of tables")
      ->type_name("FILE");
  command.callback([options] { run_load(*options); });
}

}  // namespace shoal::cli
