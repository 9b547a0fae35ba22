// Takes every function that the C++ headers declare from the library: it links only if all are exported.
#include <cstdio>

#include "shoal/clip_cache.h"
#include "shoal/engine.h"
#include "shoal/forced_logits.h"
#include "shoal/model.h"
#include "shoal/quantise.h"
#include "shoal/seeds.h"
#include "shoal/settings.h"
#include "shoal/shoal.h"
#include "shoal/stored_voices.h"

namespace {

int taken = 0;

template <typename Function>
void take_one(Function function) {
  [[maybe_unused]] const volatile Function kept = function;  // so that no address is thought away
  ++taken;
}

template <typename... Functions>
void take(Functions... functions) {
  (take_one(functions), ...);
}

void take_free_functions() {
  using namespace shoal;
  take(&clip_cache_dir, &clip_cache_usage, &clear_clip_cache, &seed_of_utterance, &drawn_seed, &traits_of,
       &validate_request, &config_for_one, &built_in_voice_dir, &resolve_device, &inspect_model,
       &estimate_memory, &quantise_model, &open_forced_logits, &all_settings, &engine_settings,
       &server_settings, &flag_of, &variable_of, &older_flags, &process_settings, &resolve_settings,
       &print_settings, &parse_models, &parse_voice_aliases, &model_voices, &clip_voices, &check_voice_name,
       &check_reference, &parse_precision, &parse_weight_format, &parse_kv_precision, &parse_codec_weights,
       &is_callers_fault);
  take(static_cast<std::string_view (*)(ErrorCode)>(&name_of),
       static_cast<std::string_view (*)(EngineState)>(&name_of),
       static_cast<std::string_view (*)(Precision)>(&name_of),
       static_cast<std::string_view (*)(WeightFormat)>(&name_of),
       static_cast<std::string_view (*)(KvPrecision)>(&name_of),
       static_cast<std::string_view (*)(CodecWeights)>(&name_of));
}

void take_members() {
  using namespace shoal;
  take(&EngineConfig::validate, &ServerConfig::validate, &MemoryEstimate::total_bytes, &MemoryEstimate::check,
       &Histogram::add);
  take(&Engine::start, &Engine::stop, static_cast<void (Engine::*)()>(&Engine::reload),
       static_cast<void (Engine::*)(EngineConfig)>(&Engine::reload),
       static_cast<Speech (Engine::*)(SpeechRequest)>(&Engine::submit),
       static_cast<Speech (Engine::*)(SpeechRequest, SpeechCallbacks)>(&Engine::submit),
       &Engine::generate_batch, &Engine::generate_batch_async, &Engine::encode, &Engine::decode,
       &Engine::codec_shape, &Engine::traits, &Engine::phonemize, &Engine::voice_styles, &Engine::voices,
       &Engine::health, &Engine::self_test, &Engine::statistics, &Engine::config, &Engine::sample_rate_hz);
  take(&Speech::sample_rate_hz, &Speech::next, &Speech::try_next, &Speech::read_all, &Speech::on_ready,
       &Speech::cancel, &Speech::ended, &Speech::error, &Speech::summary, &Speech::progress, &Speech::codes,
       &Speech::words);
}

}  // namespace

int main() {
  take_free_functions();
  take_members();
  // An Error that the library throws is caught here as the type that it is.
  try {
    shoal::Engine engine(shoal::EngineConfig{.max_batch_size = 0});
  } catch (const shoal::Error& error) {
    std::printf("%d functions; %s, of %s\n", taken, error.what(), shoal_version());
    return error.code() == shoal::ErrorCode::invalid_argument ? 0 : 1;
  }
  return 1;
}
