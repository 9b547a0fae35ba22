#include "cli/memory_table.h"

#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/thread_team.h"
#include "cli/session.h"
#include "ops/device_choice.h"
#include "ops/device_state.h"
#include "runtime/engine/system_memory.h"
#include "runtime/engine/useful_threads.h"
#include "runtime/families/kokoro/kokoro_memory.h"
#include "runtime/families/kokoro/kokoro_model.h"
#include "runtime/families/language/built_in_voice.h"
#include "runtime/families/language/memory_plan.h"
#include "runtime/families/language/pipeline.h"
#include "weights/checkpoint.h"

namespace shoal::cli {
namespace {

using nlohmann::ordered_json;
using runtime::MemoryPlan;
using runtime::ModelSizes;

ModelSizes random_s1_mini(Precision precision) {
  return {.language_model = dual_ar::Config::s1_mini(),
          .codec = dac::Config::published(),
          .dtype = runtime::dtype_of_random_weights(precision)};
}

ModelSizes sizes_in(const std::string& dir, Precision precision) {
  const weights::ModelFiles files = weights::find_model_files(dir);
  const auto tokenizer = text::load_tokenizer(files.tokenizer, files.special_tokens);
  ModelSizes sizes{.language_model = runtime::read_language_model_config(files, *tokenizer),
                   .codec = runtime::read_codec_config(files)};
  runtime::check_consistency(*tokenizer, sizes.language_model, sizes.codec, dir);
  weights::Checkpoint checkpoint = weights::Checkpoint::open(files.weights);
  sizes.dtype = runtime::choose_dtype(precision, checkpoint);
  return sizes;
}

ModelSizes sizes_of(const EngineConfig& config, Device device) {
  runtime::check_precision(config.precision, device);
  ModelSizes sizes =
      config.model == runtime::kRandomS1Mini
          ? random_s1_mini(config.precision)
          : sizes_in(config.model.empty() ? runtime::built_in_voice_dir() : config.model, config.precision);
  sizes.device = device;
  sizes.semantic_head = config.semantic_only || sizes.language_model.family == dual_ar::Family::s2;
  sizes.with_encoder = config.with_encoder;
  return sizes;
}

// What is printed of any model's plan.
struct MemoryTable {
  Device device;
  DType dtype = DType::f32;
  std::string at_once;  // what a step or a batch holds
  std::string footer;
  std::vector<MemoryPart> parts;
  int64_t available = 0;
  ordered_json figures;  // of this kind of model

  int64_t total() const {
    int64_t sum = 0;
    for (const MemoryPart& part : parts) sum += part.bytes;
    return sum;
  }
};

ordered_json json_of(const MemoryTable& table) {
  ordered_json report = {{"device", ops::describe(table.device)},
                         {"precision", name_of(runtime::precision_of(table.dtype))}};
  report.update(table.figures);
  ordered_json& parts = report["bytes"] = ordered_json::object();
  for (const MemoryPart& part : table.parts) parts[part.name] = part.bytes;
  report["total_bytes"] = table.total();
  report["available_bytes"] = table.available;
  report["fits"] = table.total() <= table.available;
  return report;
}

void print_row(const char* name, int64_t bytes) {
  std::printf("  %-28s %10.1f MB\n", name, static_cast<double>(bytes) / 1e6);
}

void print(const MemoryTable& table) {
  std::printf("memory on %s, %s, %s\n", ops::describe(table.device).c_str(),
              std::string(name_of(runtime::precision_of(table.dtype))).c_str(), table.at_once.c_str());
  for (const MemoryPart& part : table.parts) print_row(part.name.c_str(), part.bytes);
  print_row("together", table.total());
  print_row("free now", table.available);
  print_row("left", table.available - table.total());
  std::printf("  %s\n", table.footer.c_str());
}

MemoryTable table_of_language_model(const EngineConfig& config, Device device, int64_t available) {
  const ModelSizes sizes = sizes_of(config, device);
  const runtime::ThreadSplit threads =
      runtime::split_threads(config, ThreadTeam::available_cpus(), ops::computes_by_itself(device));
  const MemoryPlan plan = runtime::plan_memory(config, sizes, threads.decode, available);
  const int64_t columns = runtime::columns_of_a_step(config, device);
  return {.device = device,
          .dtype = sizes.dtype,
          .at_once = concat(config.max_batch_size, " sequences and ", columns, " columns of prompts a step, ",
                            config.streams(), " streams"),
          .footer = concat(plan.kv_pages, " KV pages hold ", plan.kv_pages * config.kv_page_size,
                           " columns; the longest sequence has ", sizes.language_model.max_positions,
                           ". Workspaces and recordings are estimates."),
          .parts = plan.parts(),
          .available = available,
          .figures = {{"max_batch_size", config.max_batch_size},
                      {"prefill_columns", columns},
                      {"streams", config.streams()},
                      {"kv_pages", plan.kv_pages},
                      {"kv_page_size", config.kv_page_size}}};
}

MemoryTable table_of_kokoro(const EngineConfig& config, Device device, int64_t available) {
  const runtime::KokoroSizes sizes = runtime::kokoro_sizes(config.model, config.precision, device);
  const int threads = runtime::useful_threads(config.threads, ThreadTeam::available_cpus());
  const runtime::KokoroMemoryPlan plan =
      runtime::plan_kokoro_memory(config, sizes.config, sizes.dtype, device, threads, available);
  const double audio_s = static_cast<double>(plan.batch.frames * sizes.config.samples_per_frame()) /
                         static_cast<double>(kokoro::kSampleRateHz);
  return {
      .device = device,
      .dtype = sizes.dtype,
      .at_once = concat(plan.batch.utterances, " utterances a batch"),
      .footer = concat(
          "A batch of at most ", plan.batch.tokens, " phonemes and ", plan.batch.frames, " frames, ",
          static_cast<int64_t>(audio_s),
          " s of sound at the usual pace. Speech that is slower takes more. The workspace is an estimate."),
      .parts = plan.parts(),
      .available = available,
      .figures = {{"max_batch_size", config.max_batch_size},
                  {"batch_phonemes", plan.batch.tokens},
                  {"batch_frames", plan.batch.frames}}};
}

}  // namespace

void print_memory(const MemoryTableOptions& options, const EngineSettings& settings) {
  EngineConfig config = settings.resolve().config;
  config.model = options.dir.empty() ? config.model : options.dir;
  config.precision = parse_precision(chosen_precision(options.precision));
  const Device device = ops::choose_device(config.device);
  const int64_t available = ops::free_device_memory(device).value_or(runtime::available_memory());
  const MemoryTable table = runtime::is_kokoro(config.model)
                                ? table_of_kokoro(config, device, available)
                                : table_of_language_model(config, device, available);
  if (options.json)
    std::cout << json_of(table).dump(1) << std::endl;
  else
    print(table);
  std::fflush(stdout);
  runtime::check_fits(table.parts, available);
}

}  // namespace shoal::cli
