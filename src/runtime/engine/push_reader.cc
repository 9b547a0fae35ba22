#include "runtime/engine/push_reader.h"

#include <memory>
#include <optional>

#include "base/log.h"
#include "runtime/engine/failure.h"
#include "runtime/engine/speech_state.h"

namespace shoal::runtime {
namespace {

// An exception of a callback neither ends the speech nor prevents the other calls.
template <typename Callback, typename... Arguments>
void call_guarded(const Callback& callback, Arguments... arguments) noexcept {
  if (!callback) return;
  try {
    callback(arguments...);
  } catch (...) {
    log(LogLevel::error, "a callback of a speech threw: ", to_error(std::current_exception()).message());
  }
}

}  // namespace

Speech push_to(Speech speech, SpeechCallbacks callbacks) {
  const std::shared_ptr<SpeechState> state = speech.state_;
  // The state holds this callback; a pointer back would keep both alive forever.
  SpeechState* const source = state.get();
  state->on_ready([source, callbacks = std::move(callbacks), over = false]() mutable {
    while (!over) {
      std::optional<std::vector<float>> samples;
      std::optional<Error> error;
      try {
        samples = source->try_next(std::chrono::milliseconds{0});
      } catch (...) {
        error = to_error(std::current_exception());
      }
      if (!samples && !error) return;
      over = error || samples->empty();
      if (over)
        call_guarded(callbacks.on_end, source->summary(), error ? &*error : nullptr);
      else
        call_guarded(callbacks.on_audio, std::span<const float>(*samples));
    }
  });
  return speech;
}

}  // namespace shoal::runtime
