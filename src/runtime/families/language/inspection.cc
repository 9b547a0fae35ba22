// The contents of a language model's folder and its needs.
#include <cstdio>

#include "base/error.h"
#include "models/dac/inventory.h"
#include "models/dual_ar/inventory.h"
#include "models/dual_ar/kv_cache.h"
#include "runtime/engine/model_precision.h"
#include "runtime/engine/tensor_audit.h"
#include "runtime/families/language/language_family.h"
#include "runtime/families/language/random_model.h"
#include "runtime/families/language/speech_model.h"
#include "weights/name_maps.h"

namespace shoal::runtime {
namespace {

std::string describe(const dual_ar::Config& lm) {
  return concat(lm.family == dual_ar::Family::s1 ? "S1" : "S2", " family, ", lm.slow_layers, " + ",
                lm.fast_layers, " layers, dim ", lm.slow.dim, " / ", lm.fast.dim, ", ", lm.num_codebooks,
                " codebooks of ", lm.codebook_size, ", vocabulary ", lm.vocab_size, ", context ",
                lm.max_positions);
}

std::string describe(const dac::Config& codec) {
  char rate[32];
  std::snprintf(rate, sizeof rate, "%.3f", codec.frames_per_second());
  return concat(codec.sample_rate_hz, " Hz, ", rate, " frames/s, ", codec.num_codebooks(), " codebooks, ",
                codec.samples_per_frame(), " samples a frame");
}

std::string describe(const weights::Quantisation& stored) {
  if (!stored.weights) return "as they were";
  const std::string groups = stored.group > 0 ? concat(", in groups of ", stored.group) : "";
  return concat(name_of_weights(*stored.weights), ", of the layers' matrices", groups);
}

ReportLine memory_line(const Formats& formats, int64_t weight_bytes, int64_t kv_bytes, int64_t positions) {
  char text[160];
  std::snprintf(text, sizeof text,
                "weights %.1f MB; KV cache %.1f KB a position, %.1f MB for the longest sequence",
                static_cast<double>(weight_bytes) / 1e6, static_cast<double>(kv_bytes) / 1e3,
                static_cast<double>(kv_bytes * positions) / 1e6);
  return {.name = concat("memory in ", name_of(precision_of(formats))), .text = text};
}

// Of a report with its checkpoints.
void add_memory(ModelReport& report, const Formats& formats, const dual_ar::Config& lm) {
  int64_t weight_bytes = 0;
  for (const CheckpointReport& checkpoint : report.checkpoints) weight_bytes += part_bytes(checkpoint);
  const int64_t kv_bytes = dual_ar::KvCache::bytes_per_token(lm, formats.kv);
  report.remarks = {memory_line(formats, weight_bytes, kv_bytes, lm.max_positions)};
  report.values = {{"weight_bytes", weight_bytes}, {"kv_bytes_per_token", kv_bytes}};
}

ModelReport inspect_random(const std::string& name, const dual_ar::Config& lm, Precision precision) {
  const dac::Config codec = dac::Config::published();
  const Formats formats = formats_of_random_weights(precision);
  ModelReport report{.dir = name,
                     .family = lm.family == dual_ar::Family::s1 ? "s1" : "s2",
                     .precision = std::string(name_of(formats.operands)),
                     .configuration = {{"configuration", describe(lm)}, {"codec", describe(codec)}}};
  report.checkpoints = {
      sizes_of_random("language model", dual_ar::required_tensors(lm), formats.operands),
      sizes_of_random("codec", dac::required_tensors(codec, dac::Parts::both), formats.operands)};
  add_memory(report, formats, lm);
  return report;
}

}  // namespace

ModelReport LanguageFamily::inspect(const std::string& model, Precision precision) const {
  if (const auto random = random_sizes(model)) return inspect_random(model, *random, precision);
  const std::string dir = model.empty() ? built_in_voice_dir() : model;
  const weights::ModelFiles files = weights::find_model_files(dir);
  const auto tokenizer = text::load_tokenizer(files.tokenizer, files.special_tokens);
  const dual_ar::Config lm = read_language_model_config(files, *tokenizer);
  const dac::Config codec = read_codec_config(files);

  weights::Checkpoint lm_checkpoint = weights::Checkpoint::open(files.weights);
  weights::normalise_dual_ar_names(lm_checkpoint);
  GenerationDefaults::read(dir);
  check_consistency(*tokenizer, lm, codec, dir);

  const auto stored = read_quantisation(files, lm_checkpoint, lm);
  const weights::Checkpoint codec_checkpoint = open_codec(files, codec, stored && stored->codec);
  const Formats formats = choose_formats(precision, lm_checkpoint, stored);
  ModelReport report{
      .dir = dir,
      .family = lm.family == dual_ar::Family::s1 ? "s1" : "s2",
      .precision = std::string(name_of(formats.operands)),
      .weights = stored && stored->weights ? std::string(name_of_weights(*stored->weights)) : "",
      .codec_weights = stored && stored->codec ? "int8" : "",
      .configuration = {{"configuration", describe(lm)}, {"codec", describe(codec)}}};
  if (stored) report.configuration.push_back({"weights", describe(*stored)});
  if (stored && stored->codec)
    report.configuration.push_back({"codec weights", "int8, of its matrices and convolutions"});
  report.checkpoints = {
      audit("language model", lm_checkpoint, files.weights, dual_ar::required_tensors(lm), formats.operands),
      audit("codec", codec_checkpoint, files.codec, dac::required_tensors(codec, dac::Parts::both),
            formats.operands)};
  add_memory(report, formats, lm);
  size_t problems = 0;
  for (const CheckpointReport& checkpoint : report.checkpoints) problems += checkpoint.problems.size();
  if (problems > 0)
    report.problem = Error(
        ErrorCode::corrupt_file,
        concat(dir, ": ", problems, " tensors are missing or have another shape; the model cannot be used"));
  return report;
}

}  // namespace shoal::runtime
