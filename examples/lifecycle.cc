// An engine from start to stop: its memory, another configuration while it serves, and an orderly shutdown.
#include <chrono>
#include <cstdio>

#include "shoal/engine.h"

namespace {

void show(const shoal::Engine& engine) {
  const shoal::Health health = engine.health();
  std::printf("%s: %s, %s, on %s\n", name_of(health.state).data(), health.model.c_str(),
              in_words(health.formats).c_str(), health.device.c_str());
  for (const shoal::MemoryPart& part : health.memory)
    std::printf("  %-15s %7.1f MB\n", part.name.c_str(), static_cast<double>(part.bytes) / 1e6);
}

shoal::SpeechRequest request(const char* text) {
  shoal::SpeechRequest made;
  made.text = text;
  return made;
}

}  // namespace

int main() {
  try {
    shoal::EngineConfig config;
    config.max_batch_size = 4;
    shoal::Engine engine(config);  // checks the configuration
    engine.start();                // loads the model and says a sentence; ready when it returns
    show(engine);

    // The new model is loaded beside the old one, which finishes its requests. No request is refused.
    shoal::Speech begun_before = engine.submit(request("This began before the change."));
    config.max_batch_size = 8;
    engine.reload(config);
    std::printf("across the reload: %zu samples\n", begun_before.read_all().size());
    show(engine);

    // stop() refuses new requests, gives running ones the grace time, and cancels the rest.
    shoal::Speech last = engine.submit(request("One more thing before we close."));
    engine.stop(std::chrono::seconds(30));
    std::printf("%s; the last request %s\n", name_of(engine.health().state).data(),
                last.error() ? last.error()->what() : "was finished");
    try {
      engine.submit(request("Too late."));
    } catch (const shoal::Error& error) {
      std::printf("%s: %s\n", name_of(error.code()).data(), error.what());
    }
  } catch (const shoal::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
