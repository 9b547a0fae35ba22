// shoal quantize: a model folder with smaller weights.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <optional>

#include "base/error.h"
#include "cli/cli.h"
#include "cli/integer_option.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/session.h"
#include "shoal/quantise.h"

namespace shoal::cli {
namespace {

struct QuantizeCommand {
  QuantiseOptions options;
  std::optional<std::string> weights, codec;
  std::optional<std::string> calibration;
  bool quiet = false;
};

void print_errors(const QuantisedLayer& layer) {
  std::printf("%-16s %10.2f %10.2f", layer.name.c_str(), 100 * layer.mean_error, 100 * layer.worst_error);
}

// Nothing of what stayed as it was.
std::string sizes(const char* what, int64_t after, int64_t before) {
  if (before == 0) return "";
  char text[96];
  std::snprintf(text, sizeof text, " %s takes %.1f MB, before %.1f MB;", what,
                static_cast<double>(after) / 1e6, static_cast<double>(before) / 1e6);
  return text;
}

void print_table(const QuantisationReport& report, const std::string& dir, bool calibrated) {
  std::printf("%-16s %10s %10s%s\n", "error, %", "mean", "worst row",
              calibrated ? "   outputs: uncalibrated, calibrated" : "");
  for (const QuantisedLayer& layer : report.layers) {
    print_errors(layer);
    if (calibrated) std::printf(" %23.2f %11.2f", 100 * layer.output_error_before, 100 * layer.output_error);
    std::printf("\n");
  }
  for (const QuantisedLayer& part : report.codec_parts) {
    print_errors(part);
    std::printf("\n");
  }
  std::printf("%s:%s%s %.1f s\n", dir.c_str(),
              sizes("the language model", report.bytes_after, report.bytes_before).c_str(),
              sizes("the codec", report.codec_bytes_after, report.codec_bytes_before).c_str(),
              report.seconds);
}

void quantize(QuantizeCommand& command) {
  if (command.codec) command.options.codec = parse_codec_weights(*command.codec);
  if (command.weights)
    command.options.weights = parse_weight_format(*command.weights);
  else if (command.options.codec != CodecWeights::automatic)
    command.options.weights = WeightFormat::automatic;
  command.options.model = chosen_model(command.options.model);
  if (command.calibration) {
    if (command.calibration->empty()) fail(ErrorCode::invalid_argument, "--calibrate: expected a file");
    command.options.calibration = *command.calibration;
  }
  const InterruptGuard interrupt;
  ProgressBar bar(wants_progress(command.quiet));
  const QuantisationReport report = quantise_model(command.options, [&](double share, const std::string& at) {
    bar.show(share, at);
    return !interrupt.received();
  });
  bar.clear();
  if (!command.quiet) print_table(report, command.options.output_dir, !command.options.calibration.empty());
}

}  // namespace

void add_quantize(CLI::App& app) {
  const auto options = std::make_shared<QuantizeCommand>();
  CLI::App& command = *app.add_subcommand(
      "quantize",
      "Write a model folder with 8- or 4-bit weights; it speaks as the model does with --weights and "
      "--codec-weights");
  command.add_option("dir,--checkpoint-path", options->options.model,
                     "folder of a language model; default: the built-in voice");
  command.add_option("-o,--output", options->options.output_dir, "the folder to write; must be new or empty")
      ->type_name("DIR")
      ->required();
  command
      .add_option(
          "--weights,--mode", options->weights,
          "of the language model's layers: int8, int4 or fp8 (for GPUs); default: int8, or as they are "
          "with --codec")
      ->type_name("FORMAT");
  command.add_option("--codec", options->codec, "of the codec: int8; default: as it is")->type_name("FORMAT");
  add_integer(command, "--group", {0, 1 << 20}, store_in(options->options.group),
              "of int4: inputs that share a scale and a minimum: 32, 64 or 128; default: 64");
  command
      .add_option(
          "--calibrate", options->calibration,
          "text file of sentences, one a line, that the model speaks first; the weights are then rounded "
          "so that what they are multiplied to changes least")
      ->type_name("FILE");
  add_integer(command, "--threads", {0, 1024}, store_in(options->options.threads),
              "CPU threads; 0: all that this process may use");
  command.add_flag("-q,--quiet", options->quiet, "print nothing but errors");
  command.footer(
      "Examples:\n"
      "  shoal quantize /models/s1-mini -o /models/s1-mini-int8\n"
      "  shoal serve --model /models/s1-mini-int8\n"
      "  shoal quantize /models/s1-mini -o /models/s1-mini-small --weights int8 --codec int8\n"
      "  shoal quantize /models/s1-mini -o /models/s1-mini-int4 --weights int4 --group 32\n"
      "  shoal quantize /models/s1-mini -o /models/s1-mini-int4 --weights int4 --calibrate sentences.txt");
  command.callback([options] { quantize(*options); });
}

}  // namespace shoal::cli
