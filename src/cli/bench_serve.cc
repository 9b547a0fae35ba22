// shoal bench serve: load on a server of speech.
#include "cli/bench_serve.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "base/error.h"
#include "bench/load/objective.h"
#include "cli/integer_option.h"
#include "cli/number_option.h"
#include "cli/server_load.h"

namespace shoal::cli {
namespace {

constexpr IntegerRange kServedUsers{1, 10'000}, kServedRequests{1, 1'000'000'000}, kItems{1, 10'000};

void add_server_options(CLI::App& command, ServerLoadOptions& o) {
  const char* const server = "Server";
  command.add_option("url,--endpoint", o.url, "http://HOST:PORT, or with the path of the route")
      ->group(server);
  command
      .add_option(
          "--api", o.api,
          "openai: POST /v1/audio/speech; fish: POST /v1/tts; batch: Shoal's POST /v1/tts/batch; live: "
          "Shoal's WebSocket /v1/audio/stream; auto: by the end of the URL, else openai")
      ->check(one_of({"auto", "openai", "fish", "batch", "live"}))
      ->capture_default_str()
      ->group(server);
  command.add_option("--api-key", o.api_key, "sent as a bearer token; kept out of the run's folder")
      ->envname("SHOAL_BENCH_API_KEY")
      ->group(server);
  command.add_option("--header", o.headers, "one more field of the request's head; may be repeated")
      ->type_name("\"NAME: VALUE\"")
      ->allow_extra_args(false)
      ->group(server);
  command
      .add_option("--ca-file", o.ca_file, "certificates in PEM to trust with https instead of the system's")
      ->type_name("FILE")
      ->group(server);
  add_number(command, "--timeout", {0.1, 86'400}, store_number_in(o.timeout_s),
             "seconds for a request, from its beginning to its last byte")
      ->default_str("120")
      ->group(server);
}

void add_served_load_options(CLI::App& command, ServerLoadOptions& o) {
  const char* const load = "Load";
  CLI::Option* concurrency = add_integers(command, "--concurrency,--concurrent", kServedUsers, o.concurrency,
                                          "closed loop: users at a time, one level for each number")
                                 ->default_str("1,4,16")
                                 ->group(load);
  add_numbers(command, "--rate", o.rates,
              "open loop instead: requests a second, arriving at random, one level for each number")
      ->excludes(concurrency)
      ->group(load);
  command
      .add_flag(
          "--sweep", o.sweep,
          "open loop: doubles the rate, from --rate or 1, until fewer than 95 % of the requests keep --slo "
          "(ttfa_ms=1000,underruns=0), and closes in on the highest that does")
      ->excludes(concurrency)
      ->group(load);
  add_integer(command, "--requests,--num-requests", kServedRequests, store_in(o.requests),
              "of each level; default: four for each user, 8 at least")
      ->group(load);
  add_number(command, "--duration", {}, store_number_in(o.duration_s),
             "seconds in which a level begins requests; default of --rate: 30")
      ->group(load);
  add_integer(command, "--warm-up", {0, 10'000}, store_in(o.warm_up),
              "requests before each level, not measured; default: one for each user, 4 with --rate")
      ->group(load);
  command.add_option("--cancel", o.cancel, "share of the users who leave after 0.1 to 1 s of sound")
      ->type_name("5%")
      ->group(load);
  command
      .add_option(
          "--listen", o.listen,
          "fast: read as fast as it comes; real-time: read what has been played, and half a second more")
      ->check(one_of({"fast", "real-time"}))
      ->capture_default_str()
      ->group(load);
  command
      .add_option("--slow-readers", o.slow_readers,
                  "share of the users who read half as fast as the sound plays; their times do not count")
      ->type_name("5%")
      ->group(load);
  add_integer(command, "--seed", {}, store_in(o.seed), "of arrivals, texts, who leaves and who is slow")
      ->default_str("1")
      ->group(load);
}

void add_speech_options(CLI::App& command, ServerLoadOptions& o) {
  const char* const speech = "Speech";
  command.add_option("--texts", o.texts, "short, medium, long (English), or a file with a text on each line")
      ->capture_default_str()
      ->group(speech);
  command.add_option("--voice", o.voices, "voices in turn; default: alloy, on Fish's route the server's own")
      ->delimiter(',')
      ->group(speech);
  command
      .add_option("--reference", o.references,
                  "clips to follow, in turn: WAV files, with the words of NAME.wav in NAME.lab or NAME.txt")
      ->type_name("FILE,...")
      ->delimiter(',')
      ->group(speech);
  command
      .add_option(
          "--fresh-references", o.fresh,
          "the lowest bits of the clips change, so that no server has met them: with each request, or "
          "once in each level and its warm-up")
      ->check(one_of({"request", "level"}))
      ->group(speech);
  command.add_option("--model", o.model, "default: tts-1 on OpenAI's route, elsewhere none is named")
      ->group(speech);
  add_integer(command, "--items", kItems, store_in(o.items),
              "texts in each request of the batch route; default: 4")
      ->group(speech);
  command.add_option("--format", o.format, "of the sound")
      ->check(one_of({"wav", "pcm"}))
      ->capture_default_str()
      ->group(speech);
  add_integer(command, "--pcm-rate", {1'000, 768'000}, store_in(o.pcm_rate_hz),
              "sample rate of a server that names none with its PCM, as its manual has it")
      ->group(speech);
  add_integer(command, "--speech-seed", {}, store_in(o.speech_seed),
              "request i asks for the seed N + i, so that the sums of requests.jsonl can be compared")
      ->group(speech);
  command
      .add_option(
          "--field", o.fields,
          "one more field of the body, such as stream=true; may be repeated: values of one name in turn")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false)
      ->group(speech);
}

void add_figure_options(CLI::App& command, ServerLoadOptions& o) {
  const char* const figures = "Figures";
  command
      .add_option(
          "--slo", o.slo,
          "what a request must keep to count as good: " + load::names_of_objectives() +
              "; ttfa_ms is the first audible sound, underruns those of a player with 100 ms of buffer")
      ->type_name("NAME=MOST,...")
      ->group(figures);
  command
      .add_flag("--check", o.check,
                "judge the figures: 95 % of requests within 5 s, 99.9 % succeed, ten users without an "
                "underrun, and "
                "2, 4, 8 users with 1.8, 3.2, 5 times the throughput of one for at most 100, 200, 400 ms "
                "more; exit "
                "code 1 if one is not kept; levels without --concurrency: 1,2,4,8,10")
      ->group(figures);
  add_number(command, "--silence-db", {-120, -1}, store_number_in(o.silence_db),
             "samples below this are silent, in dB of full scale")
      ->default_str("-50")
      ->group(figures);
  command
      .add_flag("--keep-audio", o.keep_audio,
                "keep the sound of each request in the run's folder: audio/LEVEL-INDEX.wav")
      ->group(figures);
  command.add_option("--output", o.output, "folder of the run, new or empty; default: shoal-bench-DATE-TIME")
      ->type_name("FOLDER")
      ->group(figures);
}

void add_comparison_options(CLI::App& command, ServerLoadOptions& o) {
  const char* const comparison = "Comparison";
  CLI::Option* single =
      command.add_option("--single-endpoint", o.single_url, "of one worker")->group(comparison);
  CLI::Option* multi = command.add_option("--multi-endpoint", o.multi_url, "of several")->group(comparison);
  command
      .add_flag("--compare", o.compare,
                "the same load on two servers, one after the other, and both side by side")
      ->needs(single)
      ->needs(multi)
      ->group(comparison);
  single->needs(multi);
  multi->needs(single);
}

}  // namespace

void add_bench_serve(CLI::App& bench) {
  auto options = std::make_shared<ServerLoadOptions>();
  CLI::App& command = *bench.add_subcommand(
      "serve", "Load any server of speech through HTTP, and measure what its users hear");
  command.footer(
      "A trial request comes first: what is wrong with the server is said before any load. Then come the "
      "levels, one\n"
      "after the other. The run's folder holds run.json, requests.jsonl, summary.json, summary.csv and "
      "report.html "
      "(docs/BENCH.md).\n"
      "Examples:\n"
      "  shoal bench serve http://127.0.0.1:8080 --concurrency 1,4,16\n"
      "  shoal bench serve http://127.0.0.1:8080 --rate 1,10,20 --duration 60 --slo ttfa_ms=200,underruns=0\n"
      "  shoal bench serve http://127.0.0.1:8080 --sweep --duration 20 --slo ttfa_ms=200,underruns=0\n"
      "  shoal bench serve --compare --single-endpoint http://127.0.0.1:8080 --multi-endpoint "
      "http://127.0.0.1:8090\n"
      "  shoal bench serve http://127.0.0.1:8080/v1/tts --texts long --cancel 5%\n"
      "  shoal bench serve https://api.example.com --api-key KEY --format pcm --pcm-rate 24000 --voice "
      "alloy,nova\n"
      "  shoal bench serve http://127.0.0.1:8880 --model kokoro --voice af_heart --field stream=true");
  add_server_options(command, *options);
  add_served_load_options(command, *options);
  add_speech_options(command, *options);
  add_figure_options(command, *options);
  add_comparison_options(command, *options);
  command.callback([options] {
    const ServerLoadOptions& given = *options;
    if (given.url.empty() != given.compare || given.compare == given.single_url.empty())
      fail(ErrorCode::invalid_argument,
           "url: expected one, or --compare with --single-endpoint and --multi-endpoint");
    if (given.compare)
      compare_servers(given);
    else
      run_server_load(given);
  });
}

}  // namespace shoal::cli
