#include "cli/inspect_kokoro.h"

#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/session.h"
#include "cli/tensor_audit.h"
#include "models/kokoro/inventory.h"
#include "models/kokoro/memory_sizes.h"
#include "models/kokoro/voices.h"
#include "runtime/families/kokoro/kokoro_model.h"
#include "runtime/families/language/speech_model.h"
#include "weights/name_maps.h"

namespace shoal::cli {
namespace {

using nlohmann::ordered_json;

void print_config(const kokoro::Config& config) {
  std::printf(
      "configuration: Kokoro, width %lld, PLBERT of %lld passes at %lld, %zu phonemes, %lld at a time\n",
      static_cast<long long>(config.hidden_dim), static_cast<long long>(config.bert_layers),
      static_cast<long long>(config.bert_dim), config.vocab.size(),
      static_cast<long long>(config.most_phonemes()));
  std::printf("sound: %lld Hz, %lld samples a frame\n", static_cast<long long>(kokoro::kSampleRateHz),
              static_cast<long long>(config.samples_per_frame()));
}

void print_voices(const kokoro::Voices& voices) {
  std::string names;
  for (const std::string& name : voices.names()) names += (names.empty() ? "" : " ") + name;
  std::printf("voices: %zu in %s: %s\n", voices.names().size(), voices.dir().c_str(),
              names.empty() ? "none" : names.c_str());
}

}  // namespace

void inspect_kokoro(const KokoroInspection& options) {
  if (options.dir == runtime::kRandomKokoro)
    fail(ErrorCode::unsupported, "inspect: ", options.dir, " has no folder to look into");
  const runtime::KokoroFiles files = runtime::find_kokoro_files(options.dir);
  kokoro::Config config = kokoro::Config::read(files.config);
  weights::Checkpoint checkpoint = weights::Checkpoint::open(files.weights);
  weights::normalise_kokoro_names(checkpoint);
  config.take_widths(checkpoint);
  const kokoro::Voices voices(files.voices);

  Audit audit{.part = "model", .path = files.weights};
  hold_against(checkpoint, kokoro::required_tensors(config), audit);
  const DType dtype = runtime::choose_dtype(parse_precision(chosen_precision(options.precision)), checkpoint);
  const int64_t weight_bytes = kokoro::weight_bytes(config, dtype).total();
  if (options.json) {
    const ordered_json report = {{"dir", files.dir},
                                 {"family", "kokoro"},
                                 {"precision", name_of(dtype)},
                                 {"model", json_of(audit, size_of(dtype), options.tensors)},
                                 {"voices", voices.names()},
                                 {"weight_bytes", weight_bytes}};
    std::cout << report.dump(1) << std::endl;
  } else {
    print_config(config);
    print(audit, size_of(dtype), options.tensors);
    print_voices(voices);
    std::printf("memory in %s: weights %.1f MB\n", std::string(name_of(runtime::precision_of(dtype))).c_str(),
                static_cast<double>(weight_bytes) / 1e6);
  }
  kokoro::check_tensors(checkpoint, config);
  if (voices.names().empty())
    fail(ErrorCode::not_found, files.dir, ": has no voices; the model cannot speak without one");
  if (!options.json) std::printf("nothing is missing\n");
}

}  // namespace shoal::cli
