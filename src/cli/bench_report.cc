// shoal bench report: a suite on this machine, and runs as a page.
#include "cli/bench_report.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <vector>

#include "base/error.h"
#include "bench/runs/report_page.h"
#include "bench/runs/run_files.h"
#include "cli/integer_option.h"
#include "cli/suite_run.h"

namespace shoal::cli {
namespace {

constexpr const char* kReportName = "report.html";
constexpr IntegerRange kSuiteSamples{1, 10'000}, kSuiteExtra{0, 10'000};

void draw_runs(const std::vector<std::string>& folders, const std::string& output) {
  if (folders.size() > 1 && output.empty())
    fail(ErrorCode::invalid_argument, "output: expected a file for the report of ", folders.size(), " runs");
  std::vector<runs::StoredRun> all;
  for (const std::string& folder : folders) all.push_back(runs::read_run(folder));
  const std::string path =
      output.empty() ? (std::filesystem::path(folders.front()) / kReportName).string() : output;
  runs::write_report(path, all);
  std::printf("%s\n", path.c_str());
}

void add_suite_options(CLI::App& command, SuiteOptions& o) {
  const char* const suite = "Suite";
  command
      .add_option("--configurations", o.configurations,
                  "of bf16, f16, f32, int8 and int4 (weights), int8-kv; default: those that exist here")
      ->delimiter(',')
      ->type_name("NAME,...")
      ->group(suite);
  command.add_option("--texts", o.texts, "of short, medium, long")
      ->delimiter(',')
      ->default_str("short,medium,long")
      ->type_name("NAME,...")
      ->group(suite);
  add_integer(command, "--num-samples", kSuiteSamples, store_in(o.samples), "requests for each text")
      ->default_str("10")
      ->group(suite);
  add_integer(command, "--batch-size", kSuiteExtra, store_in(o.batch),
              "requests in a row, measured together; 0: none")
      ->default_str("20")
      ->group(suite);
  add_integer(command, "--warmup-runs", kSuiteExtra, store_in(o.warm_up), "requests before, shown apart")
      ->default_str("3")
      ->group(suite);
  add_integer(command, "--seed", {}, store_in(o.seed), "of the speech")->default_str("1")->group(suite);
  command.add_option("--folder", o.folder, "of the run, new or empty; default: shoal-bench-DATE-TIME")
      ->group(suite);
  command.add_option("--json", o.json, "the results as one file, too")->type_name("FILE")->group(suite);
  o.settings.add_to(command, {"model", "device", "threads", "kv_memory_mb", "cuda_graphs", "semantic_only"});
}

}  // namespace

void draw_report(const std::string& folder) {
  try {
    const runs::StoredRun run = runs::read_run(folder);
    runs::write_report((std::filesystem::path(folder) / kReportName).string(), {&run, 1});
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
}

void add_bench_report(CLI::App& bench) {
  auto options = std::make_shared<SuiteOptions>();
  auto folders = std::make_shared<std::vector<std::string>>();
  CLI::App& command = *bench.add_subcommand("report",
                                            "Speak a suite of texts on this machine, or draw what was "
                                            "measured: one HTML file that needs no network");
  command.footer(
      "Without folders a model speaks short, medium and long texts, one request at a time, in each "
      "configuration "
      "that\n"
      "exists here. The run's folder holds run.json, requests.jsonl, summary.json, summary.csv and "
      "report.html\n"
      "(docs/BENCH.md).\n"
      "Examples:\n"
      "  shoal bench report --output report.html --json results.json\n"
      "  shoal bench report --model s1-mini --device cuda --configurations bf16,int8-kv --batch-size 0\n"
      "  shoal bench report run/                                 draws run/report.html again\n"
      "  shoal bench report before/ after/ --output both.html    runs side by side");
  add_suite_options(command, *options);
  const std::vector<CLI::Option*> of_suite =
      command.get_options([&](CLI::Option* option) { return option != command.get_help_ptr(); });
  CLI::Option* given =
      command.add_option("folders", *folders, "of runs, as bench serve and bench report write them");
  for (CLI::Option* option : of_suite) option->excludes(given);
  command.add_option("--output", options->output, "the page; it is in the folder of a run in any case")
      ->type_name("FILE");
  command.callback([options, folders] {
    if (folders->empty())
      run_suite(*options);
    else
      draw_runs(*folders, options->output);
  });
}

}  // namespace shoal::cli
