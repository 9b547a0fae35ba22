// Ending a request early: because nobody listens any more, or because its time is up.
#include <chrono>
#include <cstdio>

#include "shoal/engine.h"

namespace {

// Reads a speech to its end; prints how much sound there was and how it ended.
void listen(const char* what, shoal::Speech& speech) {
  size_t samples = 0;
  try {
    for (std::vector<float> piece = speech.next(); !piece.empty(); piece = speech.next())
      samples += piece.size();
    std::printf("%s: all %zu samples\n", what, samples);
  } catch (const shoal::Error& error) {
    // The samples made before the end have been read; then the error is thrown.
    std::printf("%s: %s after %.1f s more: %s\n", what, name_of(error.code()).data(),
                static_cast<double>(samples) / speech.sample_rate_hz(), error.what());
  }
}

shoal::SpeechRequest long_request() {
  shoal::SpeechRequest request;
  for (int i = 0; i < 500; ++i) request.text += "This goes on and on, and nobody knows when it will end. ";
  return request;
}

}  // namespace

int main() {
  try {
    shoal::Engine engine{shoal::EngineConfig{}};
    engine.start();

    // cancel() may be called from any thread, and so may dropping the handle, which does the same. The engine
    // stops within one step, and the request's resources are free for others.
    shoal::Speech cancelled = engine.submit(long_request());
    cancelled.next();
    cancelled.cancel();
    listen("cancelled", cancelled);

    // A deadline counts all time in which we wait for sound. Without one the engine's request_timeout_s
    // holds.
    shoal::SpeechRequest hurried = long_request();
    hurried.timeout = std::chrono::milliseconds(200);
    shoal::Speech late = engine.submit(std::move(hurried));
    listen("too late", late);

    shoal::SpeechRequest brief;
    brief.text = "Brief.";
    shoal::Speech fine = engine.submit(std::move(brief));
    listen("brief", fine);
  } catch (const shoal::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
