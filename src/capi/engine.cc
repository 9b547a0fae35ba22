#include "capi/engine.h"

#include <chrono>
#include <limits>
#include <string>

#include "capi/buffer.h"
#include "capi/call.h"
#include "capi/config.h"
#include "capi/request.h"
#include "report/engine_json.h"

namespace shoal::capi {

void SharedEngine::start() {
  auto threads = std::make_unique<RunningThreads>([weak = weak_from_this()] {
    if (const auto engine = weak.lock()) engine->stop(0);
  });
  engine_.start();
  const std::lock_guard lock(mutex_);
  threads_ = std::move(threads);
}

void SharedEngine::stop(int64_t grace_ms) {
  const int64_t grace = grace_ms < 0 ? std::numeric_limits<int64_t>::max() : grace_ms;
  engine_.stop(std::chrono::milliseconds(grace));
  const std::lock_guard lock(mutex_);
  threads_.reset();
}

}  // namespace shoal::capi

using namespace shoal::capi;

shoal_code shoal_engine_new(const shoal_config* config, shoal_engine** engine, shoal_error* error) {
  return call(error, [&] {
    shoal_engine*& out = output(engine, "engine");
    out = new shoal_engine(config_of(config));
  });
}

shoal_code shoal_engine_start(shoal_engine* engine, shoal_error* error) {
  return call(error, [&] { held(engine, "engine").shared->start(); });
}

shoal_code shoal_engine_stop(shoal_engine* engine, int64_t grace_ms, shoal_error* error) {
  return call(error, [&] { held(engine, "engine").shared->stop(grace_ms); });
}

shoal_code shoal_engine_reload(shoal_engine* engine, const shoal_config* config, shoal_error* error) {
  return call(error, [&] {
    shoal::Engine& running = engine_of(engine);
    if (config)
      running.reload(config_of(config));
    else
      running.reload();
  });
}

// In the child of a fork there is nothing that could be waited for: the memory stays.
void shoal_engine_free(shoal_engine* engine) {
  if (!engine || in_child_of_running()) return;
  call(nullptr, [engine] { engine->shared->stop(0); });  // voices may hold it longer
  delete engine;
}

void shoal_engine_free_later(shoal_engine* engine) {
  if (!engine || in_child_of_running()) return;
  try {
    start_thread([engine] { shoal_engine_free(engine); });
  } catch (...) {  // no thread: then it must be waited for
    shoal_engine_free(engine);
  }
}

shoal_code shoal_engine_sample_rate(const shoal_engine* engine, int32_t* hz, shoal_error* error) {
  return call(error, [&] { output(hz, "hz") = engine_of(engine).sample_rate_hz(); });
}

shoal_code shoal_engine_traits(const shoal_engine* engine, shoal_buffer** json, shoal_error* error) {
  return call(error, [&] {
    shoal_buffer*& out = output(json, "json");
    out = json_buffer(shoal::report::traits_json(engine_of(engine)));
  });
}

shoal_code shoal_engine_health(const shoal_engine* engine, shoal_buffer** json, shoal_error* error) {
  return call(error, [&] {
    shoal_buffer*& out = output(json, "json");
    out = json_buffer({shoal::report::health_members(engine_of(engine).health())});
  });
}

shoal_code shoal_engine_statistics(const shoal_engine* engine, shoal_buffer** json, shoal_error* error) {
  return call(error, [&] {
    shoal_buffer*& out = output(json, "json");
    out = json_buffer({shoal::report::statistics_members(engine_of(engine).statistics())});
  });
}

shoal_code shoal_engine_self_test(const shoal_engine* engine, shoal_buffer** json, shoal_error* error) {
  return call(error, [&] {
    shoal_buffer*& out = output(json, "json");
    out = json_buffer(shoal::report::self_test_json(engine_of(engine).self_test()));
  });
}

shoal_code shoal_engine_encode(shoal_engine* engine, const void* audio, size_t size, shoal_buffer** codes,
                               int32_t* codebooks, shoal_error* error) {
  return call(error, [&] {
    shoal_buffer*& out = output(codes, "codes");
    shoal::EncodedClip clip = engine_of(engine).encode(bytes_of(audio, size, "audio"));
    if (codebooks) *codebooks = clip.codebooks;
    out = buffer_of(std::move(clip.codes));
  });
}

shoal_code shoal_engine_decode(shoal_engine* engine, const int32_t* codes, size_t count,
                               shoal_buffer** samples, shoal_error* error) {
  return call(error, [&] {
    shoal_buffer*& out = output(samples, "samples");
    out = buffer_of(engine_of(engine).decode(codes_of(codes, count)));
  });
}

shoal_code shoal_engine_phonemize(const shoal_engine* engine, const char* text, const char* language,
                                  int32_t normalise, shoal_buffer** json, shoal_error* error) {
  return call(error, [&] {
    shoal_buffer*& out = output(json, "json");
    const shoal::Phonemized all =
        engine_of(engine).phonemize(text_of(text, "text"), text_or_empty(language), normalise != 0);
    out = json_buffer(shoal::report::phonemized_json(all));
  });
}

shoal_code shoal_engine_voice_styles(const shoal_engine* engine, const char* voice, shoal_buffer** styles,
                                     shoal_error* error) {
  return call(error, [&] {
    shoal_buffer*& out = output(styles, "styles");
    out = buffer_of(engine_of(engine).voice_styles(text_of(voice, "voice")));
  });
}
