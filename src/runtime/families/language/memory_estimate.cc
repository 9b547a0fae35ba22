// What an engine with a language model would take of its device, from the files' headers alone.
#include "base/error.h"
#include "base/thread_team.h"
#include "ops/device_state.h"
#include "runtime/engine/model_precision.h"
#include "runtime/families/language/language_family.h"
#include "runtime/families/language/memory_plan.h"
#include "runtime/families/language/pipeline.h"
#include "runtime/families/language/prefill_budget.h"
#include "runtime/families/language/random_model.h"
#include "weights/checkpoint.h"
#include "weights/name_maps.h"

namespace shoal::runtime {
namespace {

ModelSizes random_of(const dual_ar::Config& config, Precision precision) {
  return {.language_model = config,
          .codec = dac::Config::published(),
          .formats = formats_of_random_weights(precision)};
}

ModelSizes sizes_in(const std::string& dir, Precision precision) {
  const weights::ModelFiles files = weights::find_model_files(dir);
  const auto tokenizer = text::load_tokenizer(files.tokenizer, files.special_tokens);
  ModelSizes sizes{.language_model = read_language_model_config(files, *tokenizer),
                   .codec = read_codec_config(files)};
  check_consistency(*tokenizer, sizes.language_model, sizes.codec, dir);
  weights::Checkpoint checkpoint = weights::Checkpoint::open(files.weights);
  weights::normalise_dual_ar_names(checkpoint);
  const auto stored = read_quantisation(files, checkpoint, sizes.language_model);
  sizes.formats = choose_formats(precision, checkpoint, stored);
  sizes.codec_in_8_bits = stored && stored->codec;
  open_codec(files, sizes.codec, sizes.codec_in_8_bits);
  return sizes;
}

ModelSizes sizes_of(const EngineConfig& config, Device device) {
  check_precision(config.precision, device);
  const auto random = random_sizes(config.model);
  ModelSizes sizes =
      random ? random_of(*random, config.precision)
             : sizes_in(config.model.empty() ? built_in_voice_dir() : config.model, config.precision);
  check_kv_precision(config.kv_precision, device, sizes.language_model.slow.head_dim);
  sizes.formats = with_kv_precision(with_weights(sizes.formats, config.weights, device), config.kv_precision);
  sizes.codec_in_8_bits =
      codec_format(sizes.formats.operands, config.codec_weights, sizes.codec_in_8_bits, device).weights ==
      DType::i8;
  sizes.device = device;
  sizes.semantic_head = config.semantic_only || sizes.language_model.family == dual_ar::Family::s2;
  sizes.with_encoder = config.with_encoder;
  return sizes;
}

}  // namespace

MemoryEstimate LanguageFamily::estimate_memory(const EngineConfig& config, Device device,
                                               int64_t available) const {
  const ModelSizes sizes = sizes_of(config, device);
  const ThreadSplit threads =
      split_threads(config, ThreadTeam::available_cpus(), ops::computes_by_itself(device));
  const MemoryPlan plan = plan_memory(config, sizes, threads, available);
  const int64_t columns = size_of_a_step(config, device).columns;
  return {.device = ops::describe(device),
          .formats = names_of(sizes.formats, sizes.codec_format()),
          .capacity = concat(config.max_batch_size, " sequences and ", columns,
                             " columns of prompts a step, ", config.streams(), " streams"),
          .remark = concat(plan.kv_pages, " KV pages hold ", plan.kv_pages * config.kv_page_size,
                           " columns; the longest sequence has ", sizes.language_model.max_positions,
                           ". Workspaces and recordings are estimates."),
          .parts = plan.parts(),
          .figures = {{"max_batch_size", config.max_batch_size},
                      {"prefill_columns", columns},
                      {"streams", config.streams()},
                      {"kv_pages", plan.kv_pages},
                      {"kv_page_size", config.kv_page_size}},
          .available_bytes = available};
}

}  // namespace shoal::runtime
