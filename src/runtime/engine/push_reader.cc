#include "runtime/engine/push_reader.h"

#include <memory>

#include "runtime/engine/speech_state.h"

namespace shoal::runtime {

Speech push_to(Speech speech, SpeechCallbacks callbacks) {
  const std::shared_ptr<SpeechState> state = speech.state_;
  // The state keeps what it calls; a pointer back would keep both for ever.
  SpeechState* const source = state.get();
  state->on_ready([source, callbacks = std::move(callbacks), over = false]() mutable {
    if (over) return;
    try {
      while (const auto samples = source->try_next(std::chrono::milliseconds{0})) {
        if (samples->empty()) {
          over = true;
          return callbacks.on_end(source->summary(), nullptr);
        }
        callbacks.on_audio(*samples);
      }
    } catch (const Error& error) {
      over = true;
      callbacks.on_end(source->summary(), &error);
    }
  });
  return speech;
}

}  // namespace shoal::runtime
