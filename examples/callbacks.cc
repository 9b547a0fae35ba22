// The same without a loop of one's own: the engine calls when there is something to hear, and at the end.
#include <cstdio>
#include <future>

#include "shoal/engine.h"

int main() {
  try {
    shoal::Engine engine{shoal::EngineConfig{}};
    engine.start();

    shoal::SpeechRequest request;
    request.text = "Do not call us. We will call you.";
    request.seed = 7;

    // Callbacks run on threads of the engine, one call at a time for one speech. They must be quick: pass the
    // samples on to a player or a socket, and do slow work elsewhere.
    size_t pieces = 0, samples = 0;
    std::promise<bool> over;
    shoal::SpeechCallbacks callbacks;
    callbacks.on_audio = [&](std::span<const float> piece) {
      ++pieces;
      samples += piece.size();
    };
    callbacks.on_end = [&](const shoal::SpeechSummary&, const shoal::Error* error) {
      if (error) std::fprintf(stderr, "it failed: %s\n", error->what());
      over.set_value(error == nullptr);
    };

    // The handle can cancel the request and report its progress. Keep it: dropping it cancels.
    const shoal::Speech speech = engine.submit(std::move(request), callbacks);
    const bool spoken = over.get_future().get();
    std::printf("heard %zu samples in %zu pieces\n", samples, pieces);
    return spoken ? 0 : 1;
  } catch (const shoal::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
