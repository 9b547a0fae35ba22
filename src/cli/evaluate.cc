// shoal evaluate: what a number format, or another model, costs in quality.
#include <CLI/CLI.hpp>
#include <memory>

#include "base/error.h"
#include "cli/cli.h"
#include "cli/evaluate_run.h"
#include "cli/integer_option.h"
#include "cli/number_option.h"
#include "cli/option_name.h"

namespace shoal::cli {
namespace {

void add_sides(CLI::App& command, EvaluateOptions& o) {
  command.add_option(
      "dir", o.model,
      "folder of a language model, random:s1-mini, random:s2-pro; default: the built-in voice");
  o.settings.add_to(command, {"precision", "weights", "kv_precision", "codec_weights", "device", "threads",
                              "semantic_only"});
  command.add_option("--against", o.against, "another model to compare with; default: the same")
      ->type_name("MODEL");
  const auto add = [&](const char* flag, std::string& into) {
    command.add_option(flag, into, "of the reference")->capture_default_str();
  };
  add("--against-precision", o.against_precision);
  add("--against-weights", o.against_weights);
  add("--against-kv-precision", o.against_kv_precision);
  add("--against-codec-weights", o.against_codec_weights);
}

// An empty path, as of a variable that is not set, is refused: it would mean that nobody asked.
CLI::Option* add_path(CLI::App& command, const std::string& flag, std::string& into,
                      const std::string& help) {
  const auto take = [name = option_name(flag), &into](const std::string& path) {
    if (path.empty()) fail(ErrorCode::invalid_argument, name, ": expected a path, got an empty text");
    into = path;
  };
  return command.add_option_function<std::string>(flag, take, help);
}

void add_figures(CLI::App& command, EvaluateOptions& o) {
  add_path(command, "--texts", o.texts,
           "file with a text on each line, at most 1000 bytes; default: sentences")
      ->type_name("FILE");
  add_integer(command, "--sentences", {1, 1 << 20}, store_in(o.sentences), "only the first so many");
  add_integer(command, "--max-frames", {1, 1 << 20}, store_in(o.max_frames),
              "of a text; default: 1024, of random weights 16");
  add_integer(command, "--seed", {}, store_in(o.seed), "of the first text; each further one has the next")
      ->default_str("1");
  CLI::Option* logits = command.add_flag("--logits-only", o.logits_only,
                                         "compare logits alone: neither lengths nor sound nor speed");
  command.add_flag("--no-sound", o.no_sound, "without the cepstral distance");
  add_path(command, "--keep-sound", o.keep_sound,
           "new folder for the sounds of both, in side and reference, and what was said")
      ->type_name("DIR")
      ->excludes(logits);
  add_path(command, "--json", o.json, "write the figures as JSON; -: print them instead of the table")
      ->type_name("FILE");
  add_number(command, "--max-kl", {0}, store_number_in(o.gates.max_kl),
             "exit code 1 if the mean KL divergence of the semantic or of the fast heads is more (nats)");
  add_number(command, "--max-length-ratio", {1}, store_number_in(o.gates.max_length_ratio),
             "exit code 1 if a text becomes so many times as long as the reference's, or as short")
      ->excludes(logits);
}

}  // namespace

void add_evaluate(CLI::App& app) {
  const auto options = std::make_shared<EvaluateOptions>();
  CLI::App& command = *app.add_subcommand(
      "evaluate",
      "What a number format, or another model, costs in quality, with memory and speed beside it");
  add_sides(command, *options);
  add_figures(command, *options);
  command.footer(
      "The reference is the same model in float32, unless --against options say otherwise "
      "(docs/QUANTISATION.md).\n"
      "Examples:\n"
      "  shoal evaluate --weights int8                        the built-in voice in 8 bits\n"
      "  shoal evaluate /models/s1-mini --weights int8 --against-precision bfloat16\n"
      "  shoal evaluate /models/s1-mini --kv-precision int8 --max-kl 0.01 --max-length-ratio 1.5");
  command.callback([options] { run_evaluation(*options); });
}

}  // namespace shoal::cli
