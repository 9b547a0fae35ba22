// shoal inspect: the contents of a model folder, its memory, and what is missing.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/cli.h"
#include "cli/engine_settings.h"
#include "cli/memory_table.h"
#include "cli/model_report.h"
#include "cli/session.h"
#include "report/model_json.h"
#include "shoal/model.h"

namespace shoal::cli {
namespace {

struct InspectOptions {
  std::string dir;
  std::string precision;
  bool tensors = false, memory = false, json = false;
  EngineSettings settings;  // of an engine, for its memory plan
};

void inspect(const InspectOptions& options) {
  const ModelReport report = inspect_model(options.dir, parse_precision(chosen_precision(options.precision)));
  if (options.json) {
    const std::string json = server::write_json(report::model_json(report, options.tensors));
    std::cout << nlohmann::ordered_json::parse(json).dump(1) << std::endl;
  } else {
    print_report(report, options.tensors);
  }
  if (report.problem) throw Error(*report.problem);
  if (!options.json) std::printf("nothing is missing\n");
}

}  // namespace

void add_inspect(CLI::App& app) {
  auto options = std::make_shared<InspectOptions>();
  CLI::App& command = *app.add_subcommand(
      "inspect", "Look inside a model folder: configuration, tensors, memory, what is missing");
  command.add_option("dir", options->dir,
                     "model folder; default: the built-in voice; also random:s1-mini and random:s2-pro, with "
                     "--memory random:kokoro");
  command.add_option("--precision", options->precision,
                     "auto, float32, bfloat16, float16: what memory is counted in");
  command.add_flag("--tensors", options->tensors, "list every tensor");
  command.add_flag("--memory", options->memory,
                   "instead: the memory that an engine with these settings takes of its device");
  command.add_flag("--json", options->json, "print the report as JSON");
  options->settings.add_to(command,
                           {"device", "max_batch_size", "max_batch_frames", "max_streams", "prefill_columns",
                            "kv_memory_mb", "kv_memory_fraction", "kv_page_size", "weights", "kv_precision",
                            "codec_weights", "semantic_only", "with_encoder", "threads", "cuda_graphs"});
  command.footer(
      "Examples:\n"
      "  shoal inspect /models/s1-mini                    what is in it, and what is missing\n"
      "  shoal inspect /models/Kokoro-82M                 the same, and its voices\n"
      "  shoal inspect random:s1-mini --memory --device cuda --max-batch-size 256");
  command.callback([options] {
    if (options->memory)
      print_memory({.dir = options->dir, .precision = options->precision, .json = options->json},
                   options->settings);
    else
      inspect(*options);
  });
}

}  // namespace shoal::cli
