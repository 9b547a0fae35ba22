// The contents of a Kokoro folder and its needs.
#include <cstdio>

#include "base/error.h"
#include "models/kokoro/inventory.h"
#include "models/kokoro/memory_sizes.h"
#include "models/kokoro/voices.h"
#include "ops/device_choice.h"
#include "runtime/engine/model_precision.h"
#include "runtime/engine/tensor_audit.h"
#include "runtime/families/kokoro/kokoro_family.h"
#include "runtime/families/kokoro/kokoro_model.h"
#include "weights/name_maps.h"

namespace shoal::runtime {
namespace {

std::vector<ReportLine> describe(const kokoro::Config& config) {
  return {{"configuration", concat("Kokoro, width ", config.hidden_dim, ", PLBERT of ", config.bert_layers,
                                   " passes at ", config.bert_dim, ", ", config.vocab.size(), " phonemes, ",
                                   config.most_phonemes(), " at a time")},
          {"sound", concat(kokoro::kSampleRateHz, " Hz, ", config.samples_per_frame(), " samples a frame")}};
}

std::string describe(const kokoro::Voices& voices) {
  std::string names;
  for (const std::string& name : voices.names()) names += (names.empty() ? "" : " ") + name;
  return concat(voices.names().size(), " in ", voices.dir(), ": ", names.empty() ? "none" : names);
}

std::optional<Error> problem_of(const weights::Checkpoint& checkpoint, const kokoro::Config& config,
                                const kokoro::Voices& voices, const std::string& dir) {
  try {
    kokoro::check_tensors(checkpoint, config);
    if (voices.names().empty())
      fail(ErrorCode::not_found, dir, ": has no voices; the model cannot speak without one");
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

std::vector<ReportLine> remarks_on(Precision precision, DType dtype, int64_t weight_bytes,
                                   const weights::Checkpoint& checkpoint) {
  char memory[64];
  std::snprintf(memory, sizeof memory, "weights %.1f MB", static_cast<double>(weight_bytes) / 1e6);
  std::vector<ReportLine> remarks = {{concat("memory in ", name_of(precision_of(dtype))), memory}};
  if (precision == Precision::automatic)
    remarks.push_back(
        {"precision", concat("auto takes ", name_of(precision_of(dtype)), " on this machine; stored in ",
                             is_stored_in_16_bits(checkpoint) ? "16 bits" : "float32")});
  return remarks;
}

}  // namespace

ModelReport KokoroFamily::inspect(const std::string& model, Precision precision) const {
  if (model == kRandomKokoro) fail(ErrorCode::unsupported, "inspect: ", model, " has no folder to look into");
  const KokoroFiles files = find_kokoro_files(model);
  kokoro::Config config = kokoro::Config::read(files.config);
  weights::Checkpoint checkpoint = weights::Checkpoint::open(files.weights);
  weights::normalise_kokoro_names(checkpoint);
  config.take_widths(checkpoint);
  const kokoro::Voices voices(files.voices);

  const DType dtype = choose_dtype(precision, ops::usual_device(), &checkpoint);
  const int64_t weight_bytes = kokoro::weight_bytes(config, dtype, {}).total();
  std::vector<ReportLine> remarks = remarks_on(precision, dtype, weight_bytes, checkpoint);
  remarks.insert(remarks.begin(), {"voices", describe(voices)});
  return {.dir = files.dir,
          .family = "kokoro",
          .precision = std::string(name_of(dtype)),
          .configuration = describe(config),
          .checkpoints = {audit("model", checkpoint, files.weights, kokoro::required_tensors(config), dtype)},
          .remarks = std::move(remarks),
          .values = {{"voices", voices.names()}, {"weight_bytes", weight_bytes}},
          .problem = problem_of(checkpoint, config, voices, files.dir)};
}

}  // namespace shoal::runtime
