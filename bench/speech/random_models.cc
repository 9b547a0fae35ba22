#include "bench/speech/random_models.h"

#include <algorithm>

#include "base/error.h"
#include "bench/report.h"
#include "runtime/engine/model_precision.h"

namespace shoal::bench {
namespace {

template <typename Figures>
void tell(const RandomBenchOptions& options, const char* key, const Figures& figures) {
  options.on_figures(key, json_of(figures), [&] { print(figures); });
}

void run_language_model(const std::string& name, const dual_ar::Config& config, const MachineLimits& limits,
                        const RandomBenchOptions& options, ComputeSession& session) {
  ModelBenchOptions model = ModelBenchOptions::for_device(session.device());
  const Formats plain = runtime::formats_of_random_weights(options.precision);
  model.formats = runtime::with_kv_precision(runtime::with_weights(plain, options.weights, session.device()),
                                             options.kv_precision);
  model.codec_format = runtime::codec_format(model.formats.operands, options.codec_weights, /*stored=*/false,
                                             session.device());
  model.semantic_head = options.semantic_only;
  if (!options.batches.empty()) model.batches = options.batches;
  constexpr int kPage = ModelBenchOptions::kPageSize;
  if (options.context > 0) model.context_columns = (options.context + kPage - 1) / kPage * kPage;
  model.on_part = options.on_part;
  if (options.with_load) {
    options.on_part("loading a checkpoint");
    tell(options, "load", bench_load(config, plain.operands, session.context()));
  }
  tell(options, "random", bench_language_model(name, config, limits, model, session.context()));
}

void run_s1_mini(const MachineLimits& limits, const RandomBenchOptions& options, ComputeSession& session) {
  run_language_model("s1-mini", dual_ar::Config::s1_mini(), limits, options, session);
}

void run_s2_pro(const MachineLimits& limits, const RandomBenchOptions& options, ComputeSession& session) {
  run_language_model("s2-pro", dual_ar::Config::s2_pro(), limits, options, session);
}

void run_kokoro(const MachineLimits& limits, const RandomBenchOptions& options, ComputeSession& session) {
  if (options.weights != WeightFormat::automatic)
    fail(ErrorCode::unsupported, "weights: ", name_of(options.weights),
         " is for language models; Kokoro takes auto");
  if (options.kv_precision == KvPrecision::int8)
    fail(ErrorCode::unsupported,
         "kv_precision: int8 is for language models; Kokoro keeps no keys and values");
  if (options.codec_weights != CodecWeights::automatic)
    fail(ErrorCode::unsupported, "codec_weights: int8 is for the codecs of language models; Kokoro has none");
  KokoroBenchOptions model = KokoroBenchOptions::for_device(session.device());
  model.dtype = runtime::choose_dtype(options.precision, session.device(), nullptr);
  if (!options.batches.empty()) model.batches = options.batches;
  model.on_part = options.on_part;
  tell(options, "random", bench_kokoro(limits, model, session.context()));
}

}  // namespace

std::span<const RandomBench> random_benches() {
  static const RandomBench benches[] = {
      {.name = "s1-mini", .can_load = true, .run = run_s1_mini},
      {.name = "s2-pro", .can_load = true, .run = run_s2_pro},
      {.name = "kokoro", .run = run_kokoro},
  };
  return benches;
}

std::vector<std::string> names_of_random_benches() {
  std::vector<std::string> names;
  for (const RandomBench& bench : random_benches()) names.push_back(bench.name);
  return names;
}

std::string list_of_random_benches() {
  std::string list;
  for (const RandomBench& bench : random_benches()) list += (list.empty() ? "" : ", ") + bench.name;
  return list;
}

const RandomBench& random_bench(const std::string& name) {
  const auto all = random_benches();
  const auto found = std::ranges::find(all, name, &RandomBench::name);
  if (found == all.end())
    fail(ErrorCode::invalid_argument, "random: no model of random weights is called ", name);
  return *found;
}

void check_precision(Precision precision, const ComputeSession& session) {
  runtime::check_precision(precision, session.device());
}

}  // namespace shoal::bench
