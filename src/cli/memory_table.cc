#include "cli/memory_table.h"

#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/thread_team.h"
#include "cli/session.h"
#include "ops/device_choice.h"
#include "ops/device_state.h"
#include "runtime/built_in_voice.h"
#include "runtime/engine/pipeline.h"
#include "runtime/engine/system_memory.h"
#include "runtime/memory_plan.h"
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

ordered_json json_of(const MemoryPlan& plan, const ModelSizes& sizes, const EngineConfig& config) {
  ordered_json parts = ordered_json::object();
  for (const MemoryPart& part : plan.parts()) parts[part.name] = part.bytes;
  return {{"device", ops::describe(sizes.device)},
          {"precision", name_of(runtime::precision_of(sizes.dtype))},
          {"max_batch_size", config.max_batch_size},
          {"streams", config.streams()},
          {"bytes", parts},
          {"total_bytes", plan.total()},
          {"available_bytes", plan.available},
          {"kv_pages", plan.kv_pages},
          {"kv_page_size", config.kv_page_size},
          {"fits", plan.total() <= plan.available}};
}

void print_row(const char* name, int64_t bytes) {
  std::printf("  %-28s %10.1f MB\n", name, static_cast<double>(bytes) / 1e6);
}

void print_table(const MemoryPlan& plan, const ModelSizes& sizes, const EngineConfig& config) {
  std::printf("memory on %s, %s, %d sequences a step, %d streams\n", ops::describe(sizes.device).c_str(),
              std::string(name_of(runtime::precision_of(sizes.dtype))).c_str(), config.max_batch_size,
              config.streams());
  for (const MemoryPart& part : plan.parts()) print_row(part.name.c_str(), part.bytes);
  print_row("together", plan.total());
  print_row("free now", plan.available);
  print_row("left", plan.available - plan.total());
  std::printf(
      "  %lld KV pages hold %lld columns; the longest sequence has %lld. Workspaces and recordings are "
      "estimates.\n",
      static_cast<long long>(plan.kv_pages), static_cast<long long>(plan.kv_pages * config.kv_page_size),
      static_cast<long long>(sizes.language_model.max_positions));
}

}  // namespace

void print_memory(const MemoryTableOptions& options, const EngineSettings& settings) {
  EngineConfig config = settings.resolve().config;
  config.model = options.dir.empty() ? config.model : options.dir;
  config.precision = parse_precision(chosen_precision(options.precision));
  const Device device = ops::choose_device(config.device);
  const ModelSizes sizes = sizes_of(config, device);
  const runtime::ThreadSplit threads =
      runtime::split_threads(config, ThreadTeam::available_cpus(), ops::computes_by_itself(device));
  const int64_t available = ops::free_device_memory(device).value_or(runtime::available_memory());
  const MemoryPlan plan = runtime::plan_memory(config, sizes, threads.decode, available);
  if (options.json)
    std::cout << json_of(plan, sizes, config).dump(1) << std::endl;
  else
    print_table(plan, sizes, config);
  std::fflush(stdout);
  plan.check();
}

}  // namespace shoal::cli
