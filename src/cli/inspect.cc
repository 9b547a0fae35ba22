// shoal inspect: what a model folder holds, what it needs, and what is missing.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "cli/cli.h"
#include "cli/engine_settings.h"
#include "cli/inspect_kokoro.h"
#include "cli/memory_table.h"
#include "cli/session.h"
#include "cli/tensor_audit.h"
#include "models/dac/inventory.h"
#include "models/dual_ar/inventory.h"
#include "models/dual_ar/kv_cache.h"
#include "runtime/families/kokoro/kokoro_model.h"
#include "runtime/families/language/built_in_voice.h"
#include "runtime/families/language/speech_model.h"
#include "weights/checkpoint.h"
#include "weights/name_maps.h"

namespace shoal::cli {
namespace {

using nlohmann::ordered_json;

struct InspectOptions {
  std::string dir;
  std::string precision;
  bool tensors = false, memory = false, json = false;
  EngineSettings settings;  // of an engine, for what it would take
};

void print_config(const dual_ar::Config& lm, const dac::Config& codec) {
  std::printf(
      "configuration: %s family, %lld + %lld layers, dim %lld / %lld, %lld codebooks of %lld, vocabulary "
      "%lld, context %lld\n",
      lm.family == dual_ar::Family::s1 ? "S1" : "S2", static_cast<long long>(lm.slow_layers),
      static_cast<long long>(lm.fast_layers), static_cast<long long>(lm.slow.dim),
      static_cast<long long>(lm.fast.dim), static_cast<long long>(lm.num_codebooks),
      static_cast<long long>(lm.codebook_size), static_cast<long long>(lm.vocab_size),
      static_cast<long long>(lm.max_positions));
  std::printf("codec: %lld Hz, %.3f frames/s, %lld codebooks, %lld samples a frame\n",
              static_cast<long long>(codec.sample_rate_hz), codec.frames_per_second(),
              static_cast<long long>(codec.num_codebooks()),
              static_cast<long long>(codec.samples_per_frame()));
}

void inspect(const InspectOptions& options) {
  if (runtime::is_kokoro(options.dir))
    return inspect_kokoro({.dir = options.dir,
                           .precision = options.precision,
                           .tensors = options.tensors,
                           .json = options.json});
  const std::string dir = options.dir.empty() ? runtime::built_in_voice_dir() : options.dir;
  const weights::ModelFiles files = weights::find_model_files(dir);
  const auto tokenizer = text::load_tokenizer(files.tokenizer, files.special_tokens);
  const dual_ar::Config lm = runtime::read_language_model_config(files, *tokenizer);
  const dac::Config codec = runtime::read_codec_config(files);

  Audit language_model{.part = "language model", .path = files.weights};
  weights::Checkpoint checkpoint = weights::Checkpoint::open(files.weights);
  weights::normalise_dual_ar_names(checkpoint);
  hold_against(checkpoint, dual_ar::required_tensors(lm), language_model);
  Audit sound{.part = "codec", .path = files.codec};
  weights::Checkpoint codec_checkpoint = weights::Checkpoint::open(files.codec);
  weights::normalise_codec_names(codec_checkpoint);
  hold_against(codec_checkpoint, dac::required_tensors(codec, dac::Parts::both), sound);

  runtime::GenerationDefaults::read(dir);
  runtime::check_consistency(*tokenizer, lm, codec, dir);
  const DType dtype = runtime::choose_dtype(parse_precision(chosen_precision(options.precision)), checkpoint);
  const int64_t element = size_of(dtype), kv = dual_ar::KvCache::bytes_per_token(lm, dtype);
  const int64_t weight_bytes = (language_model.total_elements() + sound.total_elements()) * element;
  if (options.json) {
    const ordered_json report = {{"dir", dir},
                                 {"family", lm.family == dual_ar::Family::s1 ? "s1" : "s2"},
                                 {"precision", name_of(dtype)},
                                 {"language_model", json_of(language_model, element, options.tensors)},
                                 {"codec", json_of(sound, element, options.tensors)},
                                 {"weight_bytes", weight_bytes},
                                 {"kv_bytes_per_token", kv}};
    std::cout << report.dump(1) << std::endl;
  } else {
    print_config(lm, codec);
    print(language_model, element, options.tensors);
    print(sound, element, options.tensors);
    std::printf(
        "memory in %s: weights %.1f MB; KV cache %.1f KB a position, %.1f MB for the longest sequence\n",
        std::string(name_of(runtime::precision_of(dtype))).c_str(), static_cast<double>(weight_bytes) / 1e6,
        static_cast<double>(kv) / 1e3, static_cast<double>(kv * lm.max_positions) / 1e6);
  }
  const size_t problems = language_model.problems.size() + sound.problems.size();
  if (problems > 0)
    fail(ErrorCode::corrupt_file, dir, ": ", problems,
         " tensors are missing or have another shape; the model cannot be used");
  if (!options.json) std::printf("nothing is missing\n");
}

}  // namespace

void add_inspect(CLI::App& app) {
  auto options = std::make_shared<InspectOptions>();
  CLI::App& command = *app.add_subcommand(
      "inspect", "Look inside a model folder: configuration, tensors, memory, what is missing");
  command.add_option(
      "dir", options->dir,
      "model folder; default: the built-in voice; with --memory also random:s1-mini, random:kokoro");
  command.add_option("--precision", options->precision,
                     "auto, float32, bfloat16, float16: what memory is counted in");
  command.add_flag("--tensors", options->tensors, "list every tensor");
  command.add_flag("--memory", options->memory,
                   "instead: the memory that an engine with these settings takes of its device");
  command.add_flag("--json", options->json, "print the report as JSON");
  options->settings.add_to(command, {"device", "max_batch_size", "max_batch_frames", "max_streams",
                                     "prefill_columns", "kv_memory_mb", "kv_memory_fraction", "kv_page_size",
                                     "semantic_only", "with_encoder", "threads", "cuda_graphs"});
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
