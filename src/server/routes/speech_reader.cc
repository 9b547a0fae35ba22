#include "server/routes/speech_reader.h"

#include <atomic>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/error.h"

namespace shoal::server {

namespace asio = boost::asio;

// A timer that never expires signals that something has arrived: cancelling it resumes the reader.
struct SpeechReader::State {
  using Clock = std::chrono::steady_clock;

  State(Speech from, Executor on)
      : speech(std::move(from)), executor(on), arrival(executor, Clock::time_point::max()) {}

  Speech speech;
  const Executor executor;
  asio::basic_waitable_timer<Clock, asio::wait_traits<Clock>, Executor> arrival;
  std::atomic<bool> posted{false};  // a wake-up is pending: one serves for many arrivals
  bool cancelled = false;
};

namespace {

template <typename State>
void watch(const std::shared_ptr<State>& state) {
  // A plain pointer is safe here: ~SpeechReader waits for a running call. The posted function owns nothing.
  state->speech.on_ready([state = state.get(), weak = std::weak_ptr<State>(state)] {
    if (state->posted.exchange(true)) return;
    asio::post(state->executor, [weak] {
      const std::shared_ptr<State> reader = weak.lock();
      if (!reader) return;
      reader->posted = false;
      reader->arrival.cancel();
    });
  });
}

}  // namespace

SpeechReader::SpeechReader(Speech speech, Executor executor)
    : state_(std::make_shared<State>(std::move(speech), executor)) {
  watch(state_);
}

SpeechReader::~SpeechReader() {
  state_->speech.cancel();
  state_->speech.on_ready({});
  state_->arrival.cancel();
}

Task<std::vector<float>> SpeechReader::next() {
  const std::shared_ptr<State> state = state_;
  while (true) {
    if (state->cancelled) fail(ErrorCode::cancelled, "the client has gone");
    std::optional<std::vector<float>> samples = state->speech.try_next();
    if (samples) co_return std::move(*samples);
    co_await state->arrival.async_wait(asio::as_tuple(asio::use_awaitable_t<Executor>()));
  }
}

void SpeechReader::cancel() {
  state_->cancelled = true;
  state_->speech.cancel();
  state_->arrival.cancel();
}

Speech& SpeechReader::speech() { return state_->speech; }
SpeechSummary SpeechReader::summary() const { return state_->speech.summary(); }
std::vector<SpokenWord> SpeechReader::words(size_t first) const { return state_->speech.words(first); }

}  // namespace shoal::server
