#include "server/routes/batch_run.h"

#include <atomic>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cmath>
#include <mutex>
#include <system_error>
#include <utility>

#include "base/base64.h"
#include "server/routes/sound_encoder.h"
#include "server/routes/speech_answer.h"
#include "server/routes/speech_warnings.h"

namespace shoal::server {
namespace {

namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;
using Timer = asio::basic_waitable_timer<Clock, asio::wait_traits<Clock>, Executor>;

// An item is held in memory as a whole, together with its base64.
constexpr double kMostItemSeconds = 20 * 60;

double milliseconds_of(double seconds) { return std::round(seconds * 1000) / 1000; }

struct Sound {
  audio::Format format;
  int sample_rate_hz;
};

std::string base64_of(const Sound& sound, const std::vector<float>& samples, int from_hz) {
  const audio::EncoderOptions options{.sample_rate_hz = sound.sample_rate_hz, .rewritable_header = true};
  SoundEncoder encoder(sound.format, options, from_hz);
  std::string file = encoder.encode(samples);
  file += encoder.finish();
  encoder.complete_header(file);
  return to_base64(file);
}

std::string failure_json(size_t index, const Error& error, double seconds) {
  return write_json({Value::Object{{"index", {static_cast<int64_t>(index)}},
                                   {"success", {false}},
                                   {"audio_base64", {}},
                                   {"generation_time", {milliseconds_of(seconds)}},
                                   {"error", {http_error(error).message}},
                                   {"code", {std::string(name_of(error.code()))}},
                                   {"seed", {}}}});
}

std::string success_json(size_t index, BatchResult& result, const Sound& sound) {
  const SpeechSummary& summary = result.summary;
  const std::vector<float> samples = std::exchange(result.samples, {});
  Value::Object told{{"index", {static_cast<int64_t>(index)}},
                     {"success", {true}},
                     {"audio_base64", {base64_of(sound, samples, summary.sample_rate_hz)}},
                     {"generation_time", {milliseconds_of(summary.total_s)}},
                     {"error", {}},
                     {"seed", {static_cast<int64_t>(summary.seed)}},
                     {"format", {std::string(audio::name_of(sound.format))}},
                     {"sample_rate", {int64_t{sound.sample_rate_hz}}},
                     {"audio_seconds", {milliseconds_of(summary.audio_s())}}};
  if (!summary.warnings.empty()) told.emplace_back("warnings", warnings_value(summary.warnings));
  return write_json({std::move(told)});
}

// Makes the answer of a successful item. Returns the error of a failed one, whose answer is still to be made.
std::optional<Error> succeed(BatchAnswer& answer, BatchResult& result, const Sound& sound) {
  if (result.error) return result.error;
  try {
    answer.json = success_json(answer.index, result, sound);
    answer.memory.resize(std::ssize(answer.json));  // instead of the samples
    answer.success = true;
    return std::nullopt;
  } catch (const Error& error) {
    return error;
  }
}

Error out_of_memory() {
  return {ErrorCode::resource_exhausted, "memory ran out while the item's answer was made; try again later"};
}

}  // namespace

// Results on their way from the batch's thread.
struct BatchRun::Arrivals : std::enable_shared_from_this<Arrivals> {
  Arrivals(Executor on, const BatchRequest& batch, BodyBudget& budget)
      : executor(on),
        in_order(batch.in_order),
        most_waiting_bytes(batch.most_waiting_bytes),
        wake(on),
        places(batch.items.size()) {
    for (size_t i = 0; i < batch.items.size(); ++i) memory.emplace_back(budget);
  }

  // From the batch's thread.
  void push(BatchAnswer answer) {
    {
      const std::lock_guard lock(mutex);
      waiting_bytes += answer.json.size();
      const size_t place = in_order ? answer.index : pushed;
      places[place].emplace(std::move(answer));
      ++pushed;
    }
    asio::post(executor, [self = shared_from_this()] { self->wake.cancel(); });
  }
  bool is_full() {
    const std::lock_guard lock(mutex);
    return waiting_bytes >= most_waiting_bytes;
  }
  std::optional<BatchAnswer> take() {
    const std::lock_guard lock(mutex);
    if (taken == places.size() || !places[taken]) return std::nullopt;
    std::optional<BatchAnswer> answer = std::move(places[taken]);
    places[taken++].reset();
    waiting_bytes -= answer->json.size();
    return answer;
  }
  // Releases results that nobody will take: this object may outlive the budget, in the executor.
  void give_back_memory() {
    const std::lock_guard lock(mutex);
    places.clear();
    memory.clear();
  }

  const Executor executor;
  const bool in_order;
  const size_t most_waiting_bytes;
  std::vector<AnswerMemory> memory;   // of the items that have not ended; of the batch's thread
  Timer wake;                         // of the connection's thread
  std::atomic<bool> expired = false;  // cancelled because the time was up
  std::mutex mutex;                   // guards what follows
  std::vector<std::optional<BatchAnswer>> places;
  size_t pushed = 0, taken = 0, waiting_bytes = 0;
};

BatchRun::BatchRun(Executor executor, Services& services, const Request& from, BatchRequest batch,
                   const std::stop_token& gone)
    : left_(batch.items.size()),
      deadline_(Clock::now() + batch.timeout),
      returned_(Clock::now()),
      arrivals_(std::make_shared<Arrivals>(executor, batch, services.answers)),
      when_gone_(gone, [stop = stop_] { std::stop_source(stop).request_stop(); }) {
  std::vector<SpeechRequest> requests;
  std::vector<std::optional<Error>> errors;
  for (BatchItem& item : batch.items) {
    requests.push_back(std::move(item.speech));  // one that could not be read keeps its place: seeds go by it
    errors.push_back(std::move(item.error));
  }
  const auto error_of = [errors = std::move(errors), &services, &engine = *batch.engine, &from,
                         arrivals = arrivals_](size_t index, const Error& error) -> Error {
    if (errors[index]) return *errors[index];
    if (error.code() == ErrorCode::cancelled && arrivals->expired)
      return {ErrorCode::deadline_exceeded, "timeout: the batch's time was up before this item had ended"};
    try {
      tell_unknown_voice(services, engine, error);
      hide_paths(engine, from, error);
      return error;
    } catch (const Error& hidden) {
      return hidden;
    }
  };
  Sound sound{batch.format, batch.sample_rate_hz};
  if (sound.sample_rate_hz == 0)
    sound.sample_rate_hz = audio::usual_rate_hz(batch.format, batch.engine->sample_rate_hz());
  const auto report = [error_of, &services, &from, arrivals = arrivals_, sound](size_t index,
                                                                                BatchResult& result) {
    BatchAnswer answer{.index = index, .memory = std::move(arrivals->memory[index])};
    try {
      const std::optional<Error> error = succeed(answer, result, sound);
      if (!error) services.usage.add_sound(from.client, result.summary.audio_s());
      if (error) answer.json = failure_json(index, error_of(index, *error), result.summary.total_s);
    } catch (const std::exception&) {  // next() reports it
      answer.json.clear();
    }
    if (!answer.success) answer.memory.resize(0);
    arrivals->push(std::move(answer));
  };
  const auto count_samples = [arrivals = arrivals_](size_t index, size_t samples) {
    arrivals->memory[index].take(static_cast<int64_t>(samples * sizeof(float)));
  };
  try {
    batch_ = batch.engine->generate_batch_async(
        std::move(requests), {.seed = batch.seed,
                              .on_item = report,
                              .max_item_s = kMostItemSeconds,
                              .max_in_flight = services.config.max_concurrency_per_key,
                              .on_samples = count_samples,
                              .hold_back = [arrivals = arrivals_] { return arrivals->is_full(); },
                              .cancel = stop_.get_token()});
  } catch (const std::system_error&) {
    fail(ErrorCode::resource_exhausted, "there is no thread for one more batch; try again later");
  }
}

BatchRun::~BatchRun() {
  stop_.request_stop();
  batch_.wait();
  arrivals_->give_back_memory();
}

Task<std::optional<BatchAnswer>> BatchRun::next() {
  if (left_ == 0) co_return std::nullopt;
  // The client was still reading earlier results: that time does not count as waiting.
  if (deadline_ != Clock::time_point::max()) deadline_ += Clock::now() - returned_;
  while (true) {
    if (auto answer = arrivals_->take()) {
      --left_;
      returned_ = Clock::now();
      if (answer->json.empty()) answer->json = failure_json(answer->index, out_of_memory(), 0);
      co_return answer;
    }
    arrivals_->wake.expires_at(deadline_);
    co_await arrivals_->wake.async_wait(asio::as_tuple(asio::use_awaitable_t<Executor>()));
    if (Clock::now() < deadline_) continue;
    arrivals_->expired = true;
    stop_.request_stop();
    deadline_ = Clock::time_point::max();
  }
}

}  // namespace shoal::server
