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
#include "cli/memory_table.h"
#include "cli/session.h"
#include "models/dac/inventory.h"
#include "models/dual_ar/inventory.h"
#include "models/dual_ar/kv_cache.h"
#include "runtime/built_in_voice.h"
#include "runtime/speech_model.h"
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

// One of the two checkpoints of a folder, held against what its model asks for.
struct Audit {
  std::string part, path;
  int64_t file_bytes = 0;
  std::vector<weights::StoredTensor> tensors;
  std::vector<std::pair<std::string, int64_t>> elements;  // by part of the model
  std::vector<std::string> problems;                      // missing tensors, wrong shapes
  size_t unused = 0;                                      // tensors that no part of the model reads

  void count(const std::string& name, int64_t more) {
    const auto same = [&](const auto& entry) { return entry.first == name; };
    const auto entry = std::find_if(elements.begin(), elements.end(), same);
    if (entry == elements.end()) {
      elements.emplace_back(name, more);
    } else {
      entry->second += more;
    }
  }
  int64_t total_elements() const {
    int64_t total = 0;
    for (const auto& [name, count] : elements) total += count;
    return total;
  }
};

template <typename Required>
void hold_against(const weights::Checkpoint& checkpoint, const std::vector<Required>& required,
                  Audit& audit) {
  size_t used = 0;
  for (const Required& tensor : required) {
    const auto found = tensor.stored_in(checkpoint);
    used += found.names.size();
    if (!found.problem.empty()) audit.problems.push_back(found.problem);
    audit.count(tensor.part, tensor.shape.elements());
  }
  audit.tensors = checkpoint.tensors();
  audit.file_bytes = checkpoint.file_bytes();
  audit.unused = audit.tensors.size() - std::min(used, audit.tensors.size());
}

ordered_json json_of(const Audit& audit, int64_t bytes_per_element, bool with_tensors) {
  ordered_json parts = ordered_json::object();
  for (const auto& [name, count] : audit.elements)
    parts[name] = {{"parameters", count}, {"bytes", count * bytes_per_element}};
  ordered_json json = {
      {"file", audit.path}, {"file_bytes", audit.file_bytes}, {"tensors", audit.tensors.size()},
      {"parts", parts},     {"unused_tensors", audit.unused}, {"problems", audit.problems}};
  if (with_tensors) {
    for (const weights::StoredTensor& t : audit.tensors) {
      const auto dims = t.view.shape().dims();
      json["tensor_list"].push_back({{"name", t.name},
                                     {"dtype", name_of(t.view.dtype())},
                                     {"shape", std::vector<int64_t>(dims.begin(), dims.end())},
                                     {"bytes", t.view.bytes()}});
    }
  }
  return json;
}

void print(const Audit& audit, int64_t bytes_per_element, bool with_tensors) {
  std::printf("%s: %s, %zu tensors, %.1f MB on disk\n", audit.part.c_str(), audit.path.c_str(),
              audit.tensors.size(), static_cast<double>(audit.file_bytes) / 1e6);
  for (const auto& [name, count] : audit.elements) {
    std::printf("  %-28s %12lld parameters %10.1f MB in memory\n", name.c_str(),
                static_cast<long long>(count), static_cast<double>(count * bytes_per_element) / 1e6);
  }
  if (audit.unused > 0) std::printf("  %zu tensors are not used by this model\n", audit.unused);
  for (const std::string& problem : audit.problems) std::printf("  PROBLEM %s\n", problem.c_str());
  if (!with_tensors) return;
  for (const weights::StoredTensor& t : audit.tensors) {
    std::printf("  %-80s %-5s %s\n", t.name.c_str(), std::string(name_of(t.view.dtype())).c_str(),
                concat(t.view.shape()).c_str());
  }
}

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
  command.add_option("dir", options->dir,
                     "model folder; default: the built-in voice; with --memory also random:s1-mini");
  command.add_option("--precision", options->precision,
                     "auto, float32, bfloat16, float16: what memory is counted in");
  command.add_flag("--tensors", options->tensors, "list every tensor");
  command.add_flag("--memory", options->memory,
                   "instead: the memory that an engine with these settings takes of its device");
  command.add_flag("--json", options->json, "print the report as JSON");
  options->settings.add_to(command, {"device", "max_batch_size", "max_streams", "prefill_columns",
                                     "kv_memory_mb", "kv_memory_fraction", "kv_page_size", "semantic_only",
                                     "with_encoder", "threads", "cuda_graphs"});
  command.footer(
      "Examples:\n"
      "  shoal inspect /models/s1-mini                    what is in it, and what is missing\n"
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
