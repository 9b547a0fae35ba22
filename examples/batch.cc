// Many texts at once. The engine speaks them side by side, which is several times faster than one after the
// other, and gives the results in the order of the requests. One bad item never fails another.
#include <cstdio>

#include "shoal/engine.h"

int main() {
  try {
    shoal::Engine engine{shoal::EngineConfig{}};
    engine.start();

    std::vector<shoal::SpeechRequest> requests(4);
    requests[0].text = "The first of four.";
    requests[1].text = "The second is a little longer than the first.";
    requests[2].text = " ";  // not speakable: this item fails
    requests[3].text = "The last.";

    shoal::BatchOptions options;
    options.seed = 42;  // each item gets a seed derived from it, so the whole batch can be repeated
    options.on_item = [](size_t index, const shoal::BatchResult&) {
      std::fprintf(stderr, "item %zu has ended\n", index);  // in the order in which they do
    };

    const std::vector<shoal::BatchResult> results = engine.generate_batch(requests, options);
    for (size_t i = 0; i < results.size(); ++i) {
      if (results[i].error) {
        std::printf("%zu: %s: %s\n", i, name_of(results[i].error->code()).data(), results[i].error->what());
      } else {
        std::printf("%zu: %.2f s of speech\n", i, results[i].summary.audio_s());
      }
    }
  } catch (const shoal::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
