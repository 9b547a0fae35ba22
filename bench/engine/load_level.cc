#include "bench/engine/load_level.h"

#include <algorithm>
#include <optional>
#include <set>
#include <unordered_map>

#include "base/clock.h"
#include "base/error.h"
#include "bench/engine/listener.h"
#include "bench/engine/notices.h"
#include "bench/machine.h"

namespace shoal::bench {
namespace {

constexpr int64_t kWatchEvery_us = 50'000;
// A user whose request was turned away does not come back at once.
constexpr int64_t kPauseAfterRefusal_us = 100'000;

double seconds(int64_t us) { return static_cast<double>(us) * 1e-6; }

// One request and its listener. Notices come for each piece and for the end.
struct Stream {
  Speech speech;
  Listener listener;
  int64_t due_us = 0;           // when the request was to be submitted
  int64_t first_us = 0;         // of the first notice; 0: none yet
  int64_t last_us = 0;          // of the latest
  std::optional<double> gap_s;  // before the latest notice, which may turn out to be the end
  int64_t unread_since_us = 0;  // 0: no sound is known to wait
  bool waiting = true;          // read as soon as a notice comes
};

class LevelRun {
 public:
  LevelRun(Engine& engine, const Workload& workload, const LevelPlan& plan, const LevelWatch& watch)
      : engine_(engine),
        workload_(workload),
        plan_(plan),
        watch_(watch),
        before_(engine.statistics()),
        start_us_(now_us()),
        supply_(plan, start_us_) {
    figures_.plan = plan;
    reset_peak_resident();
  }

  LevelFigures run() {
    while (true) {
      int64_t now = now_us();
      if (now >= next_watch_us_) look_around(now);
      submit_due();
      now = now_us();
      if (supply_.exhausted(now)) {
        if (!busy_end_ && (plan_.open_loop() || static_cast<int>(streams_.size()) < plan_.users))
          end_busy(now);
        if (streams_.empty()) break;
      }
      for (const Notice& notice : notices_.take(next_event_us(now))) hear(notice);
      read_due();
    }
    return finish();
  }

 private:
  void submit_due() {
    // An open loop that is late keeps its plan; users of a closed one go home when time is up.
    while (const auto due_us = supply_.next_us()) {
      const int64_t now = now_us();
      if (*due_us > now || supply_.exhausted(now)) return;
      submit(*due_us, now);
      if (now >= next_watch_us_) look_around(now);
    }
  }

  void submit(int64_t due_us, int64_t now) {
    const uint64_t id = plan_.first_request + static_cast<uint64_t>(supply_.taken());
    supply_.take();
    ++figures_.requests.submitted;
    figures_.submit_lag_max_s = std::max(figures_.submit_lag_max_s, seconds(now - due_us));
    try {
      Speech speech = engine_.submit(workload_.request(id));
      const Listener listener(speech.sample_rate_hz());
      Stream& stream =
          streams_.emplace(id, Stream{.speech = std::move(speech), .listener = listener, .due_us = due_us})
              .first->second;
      stream.speech.on_ready([this, id] { notices_.post(id); });
    } catch (const Error& error) {
      const bool full = error.code() == ErrorCode::resource_exhausted;
      count_error(error, full ? figures_.requests.refused : figures_.requests.failed);
      supply_.user_is_free(now_us() + kPauseAfterRefusal_us);
    }
  }

  int64_t next_event_us(int64_t now) const {
    int64_t next = next_watch_us_;
    if (const auto due_us = supply_.next_us(); due_us && !supply_.exhausted(now))
      next = std::min(next, *due_us);
    if (!reads_.empty()) next = std::min(next, reads_.begin()->first);
    return next;
  }

  void hear(const Notice& notice) {
    const auto found = streams_.find(notice.stream);
    if (found == streams_.end()) return;  // its end was read before this was
    Stream& stream = found->second;
    if (stream.first_us == 0) {
      stream.first_us = notice.at_us;
    } else {
      if (stream.gap_s) gaps_s_.add(*stream.gap_s);
      stream.gap_s = seconds(notice.at_us - stream.last_us);
    }
    stream.last_us = notice.at_us;
    if (stream.unread_since_us == 0) stream.unread_since_us = notice.at_us;
    if (!stream.waiting) return;
    // One notice may stand for several pieces and the end: those from before the listener existed.
    while (read(notice.stream, stream) && stream.waiting) {
    }
  }

  // Listeners that have played everything they had.
  void read_due() {
    const int64_t now = now_us();
    while (!reads_.empty() && reads_.begin()->first <= now) {
      const uint64_t id = reads_.begin()->second;
      reads_.erase(reads_.begin());
      read(id, streams_.at(id));
    }
  }

  // Whether there was something. May end the stream, which is gone then.
  bool read(uint64_t id, Stream& stream) {
    try {
      const auto samples = stream.speech.try_next();
      stream.waiting = true;
      const int64_t since_us = stream.unread_since_us == 0 ? now_us() : stream.unread_since_us;
      stream.unread_since_us = 0;
      if (!samples) return false;
      if (samples->empty()) {
        complete(id, stream);
        return false;
      }
      stream.listener.hear(since_us, static_cast<int64_t>(samples->size()));
      if (plan_.listening == Listening::real_time && !figures_.interrupted) {
        stream.waiting = false;
        reads_.emplace(stream.listener.runs_dry_at_us(), id);
      }
      return true;
    } catch (const Error& error) {
      RequestCounts& counts = figures_.requests;
      const bool expired = error.code() == ErrorCode::deadline_exceeded;
      const bool cancelled = error.code() == ErrorCode::cancelled;
      count_error(error, expired ? counts.expired : cancelled ? counts.cancelled : counts.failed);
      leave(id);
      return false;
    }
  }

  void count_error(const Error& error, int64_t& outcome) {
    ++outcome;
    ++figures_.requests.errors[std::string(name_of(error.code()))];
    if (!figures_.first_error) figures_.first_error = error;
  }

  void complete(uint64_t id, const Stream& stream) {
    const SpeechSummary summary = stream.speech.summary();
    ++figures_.requests.completed;
    figures_.audio_s += summary.audio_s();
    figures_.frames += summary.frames;
    figures_.prompt_columns += summary.prompt_columns;
    figures_.cached_columns += summary.cached_columns;
    figures_.computed_columns += summary.computed_columns;
    const double latency_s = seconds(stream.last_us - stream.due_us);
    latencies_s_.add(latency_s);
    queue_waits_s_.add(summary.admitted_s - summary.prepared_s);
    if (summary.samples > 0) {
      first_audio_s_.add(seconds(stream.first_us - stream.due_us));
      real_time_factors_.add(latency_s / summary.audio_s());
    }
    figures_.underruns += stream.listener.underruns();
    figures_.streams_with_underruns += stream.listener.underruns() > 0;
    figures_.dry_s += seconds(stream.listener.dry_us());
    leave(id);
  }

  void leave(uint64_t id) {
    streams_.erase(id);
    supply_.user_is_free(now_us());
  }

  void look_around(int64_t now) {
    next_watch_us_ = now + kWatchEvery_us;
    const Statistics statistics = engine_.statistics();
    figures_.kv_pages_peak = std::max(figures_.kv_pages_peak, statistics.kv.pages_used);
    if (watch_.interrupted && !figures_.interrupted && watch_.interrupted()) interrupt();
    if (!watch_.on_progress) return;
    const double elapsed_s = seconds(now - start_us_);
    const auto submitted = figures_.requests.submitted, open = static_cast<int64_t>(streams_.size());
    const double by_time = plan_.duration_s > 0 ? elapsed_s / plan_.duration_s : 0;
    const double by_count =
        plan_.requests > 0 ? static_cast<double>(submitted - open) / static_cast<double>(plan_.requests) : 0;
    watch_.on_progress(
        {.fraction = std::min(1.0, std::max(by_time, by_count)),
         .submitted = submitted,
         .ended = submitted - open,
         .open = open,
         .audio_s_per_s = elapsed_s > 0 ? (statistics.audio_s - before_.audio_s) / elapsed_s : 0});
  }

  void interrupt() {
    figures_.interrupted = true;
    supply_.stop();
    // Without playback the sound is read as soon as it arrives, or now if it has arrived.
    reads_.clear();
    std::vector<uint64_t> open;
    for (auto& [id, stream] : streams_) {
      stream.speech.cancel();
      open.push_back(id);
    }
    for (const uint64_t id : open) {
      while (read(id, streams_.at(id))) {
      }
    }
  }

  void end_busy(int64_t now) { busy_end_ = figures_since_start(now); }

  EngineFigures figures_since_start(int64_t now) {
    return figures_between(before_, engine_.statistics(), seconds(now - start_us_));
  }

  LevelFigures finish() {
    const int64_t now = now_us();
    figures_.elapsed_s = seconds(now - start_us_);
    figures_.whole = figures_since_start(now);
    figures_.busy = busy_end_.value_or(figures_.whole);
    figures_.first_audio_s = first_audio_s_.percentiles();
    figures_.chunk_gap_s = gaps_s_.percentiles();
    figures_.latency_s = latencies_s_.percentiles();
    figures_.real_time_factor = real_time_factors_.percentiles();
    figures_.queue_wait_s = queue_waits_s_.percentiles();
    const Health health = engine_.health();
    figures_.kv = health.statistics.kv;
    figures_.kv_pages_peak = std::max(figures_.kv_pages_peak, figures_.kv.pages_used);
    figures_.memory = health.memory;
    figures_.resident_bytes = health.resident_bytes;
    figures_.resident_peak_bytes = peak_resident_bytes();
    return std::move(figures_);
  }

  Engine& engine_;
  const Workload& workload_;
  const LevelPlan plan_;
  const LevelWatch& watch_;
  const Statistics before_;
  const int64_t start_us_;
  Supply supply_;
  Notices notices_;  // outlives the streams, whose callbacks post to it
  std::unordered_map<uint64_t, Stream> streams_;
  std::set<std::pair<int64_t, uint64_t>> reads_;  // of listeners who are playing: when, whose
  int64_t next_watch_us_ = 0;
  std::optional<EngineFigures> busy_end_;
  Samples first_audio_s_, gaps_s_, latencies_s_, real_time_factors_, queue_waits_s_;
  LevelFigures figures_;
};

}  // namespace

LevelFigures run_level(Engine& engine, const Workload& workload, const LevelPlan& plan,
                       const LevelWatch& watch) {
  plan.validate();
  return LevelRun(engine, workload, plan, watch).run();
}

}  // namespace shoal::bench
