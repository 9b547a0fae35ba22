// A batch in the background, while this thread does something else.
#include <atomic>
#include <chrono>
#include <cstdio>

#include "shoal/engine.h"

int main() {
  try {
    shoal::Engine engine{shoal::EngineConfig{}};
    engine.start();

    std::vector<shoal::SpeechRequest> requests(6);
    for (size_t i = 0; i < requests.size(); ++i)
      requests[i].text = "This is message number " + std::to_string(i + 1) + ".";

    std::atomic<size_t> ended = 0;  // on_item runs on another thread
    shoal::BatchOptions options;
    options.on_item = [&](size_t, const shoal::BatchResult&) { ++ended; };
    std::future<std::vector<shoal::BatchResult>> batch = engine.generate_batch_async(requests, options);

    // Meanwhile the engine serves others as well: requests of a batch wait in the same queue.
    shoal::SpeechRequest request;
    request.text = "A word in between.";
    const std::vector<float> between = engine.submit(request).read_all();
    std::printf("spoke %zu samples in between\n", between.size());

    while (batch.wait_for(std::chrono::milliseconds(100)) != std::future_status::ready)
      std::fprintf(stderr, "%zu of %zu have ended\n", ended.load(), requests.size());

    double audio_s = 0;
    for (const shoal::BatchResult& result : batch.get()) {
      if (result.error) throw shoal::Error(*result.error);
      audio_s += result.summary.audio_s();
    }
    std::printf("%zu messages, %.1f s of speech\n", requests.size(), audio_s);
  } catch (const shoal::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
