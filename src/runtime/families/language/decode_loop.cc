#include "runtime/families/language/decode_loop.h"

#include <algorithm>

#include "base/log.h"
#include "base/trace.h"
#include "ops/stream.h"
#include "runtime/engine/failure.h"
#include "runtime/families/language/codec_part.h"
#include "runtime/families/language/memory_plan.h"
#include "runtime/schedule/device_share.h"

namespace shoal::runtime {
namespace {

// Rounds in a row that may fail outside of the model's calls before the newest request pays for it, and how
// long the loop then leaves the processor to others.
constexpr int kFailedRounds = 3;
constexpr int64_t kPatienceUs = 1000, kMostPatienceUs = 1'000'000;

// Codec passes between two steps.
constexpr int kMostCodecPasses = 8;

KvPages::Options page_options(const DecodeLoop::Parts& parts) {
  return {.pages = parts.cache.pages(),
          .page_size = parts.cache.page_size(),
          .column_width = parts.model.language_model().config().columns(),
          .cache = parts.config.prefix_cache,
          .max_voices = parts.config.kv_cache_size};
}

}  // namespace

DecodeLoop::DecodeLoop(const Parts& parts)
    : parts_(parts),
      ctx_(parts.ctx),
      pages_(page_options(parts)),
      runner_(parts.model.language_model().config(), parts.calls, parts.cache, ctx_, parts.config.streams()),
      frame_us_(static_cast<int64_t>(1e6 / parts.model.codec().config().frames_per_second())),
      prefetch_samples_(static_cast<int64_t>(
          parts.config.prefetch_s * static_cast<double>(parts.model.codec().config().sample_rate_hz))),
      is_worth_dividing_(is_worth_dividing(parts.config, parts.model.language_model().bytes_per_frame())),
      prefill_(size_of_a_step(parts.config, parts.ctx.device), frame_us_),
      patience_us_(kPatienceUs),
      workspace_bytes_(parts.ctx.workspace->capacity_bytes()) {
  // Reserves the vectors that a round appends to, so that admitting and speaking cannot run out of memory
  // half way.
  const auto streams = static_cast<size_t>(parts.config.streams());
  active_.reserve(streams);
  active_jobs_.reserve(streams);
  rows_.reserve(streams);
  row_owners_.reserve(streams);
  thread_ = std::thread([this] { run(); });
}

DecodeLoop::~DecodeLoop() {
  exit_.store(true);
  parts_.wake->ring();
  thread_.join();
}

void DecodeLoop::submit(std::shared_ptr<SpeechJob> job) {
  inbox_.put(std::move(job));
  parts_.wake->ring();
}

void DecodeLoop::watch(std::shared_ptr<PreparingSpeech> speech) {
  inbox_.put(std::move(speech));
  parts_.wake->ring();
}

void DecodeLoop::cancel_all(ErrorCode code, const char* message) {
  inbox_.stop({code, message});
  parts_.wake->ring();
}

void DecodeLoop::run() {
  while (!exit_.load()) {
    int64_t wake_us = 0, codec_wake_us = 0;
    bool busy = round(wake_us);
    busy |= run_codec(codec_wake_us);
    if (!busy) parts_.wake->wait(earlier(wake_us, codec_wake_us));
  }
}

// Without its own thread the codec decodes due frames here: generation must not run ahead of its sound.
bool DecodeLoop::run_codec(int64_t& wake_us) {
  if (parts_.codec.has_own_thread()) return false;
  int passes = 0;
  while (passes < kMostCodecPasses && parts_.codec.round(wake_us)) ++passes;
  return passes > 0;
}

bool DecodeLoop::round(int64_t& wake_us) noexcept {
  try {
    const bool busy = work(wake_us);
    failed_rounds_ = 0;
    patience_us_ = kPatienceUs;
    return busy;
  } catch (...) {
    on_failed_round(to_error(std::current_exception()));
    return true;
  }
}

// The step that threw changed nothing, so the next round can repeat it. Most often memory was short for a
// moment; if it stays short, the newest request fails to make room.
void DecodeLoop::on_failed_round(Error error) {
  log(LogLevel::error, "a round of the decode loop failed: ", error.message());
  parts_.ledger.count_retry();
  parts_.codec.ring();  // the round may have ended requests before it failed
  if (++failed_rounds_ < kFailedRounds) return;
  failed_rounds_ = 0;
  const auto newest = std::max_element(active_.begin(), active_.end(), [](const auto& a, const auto& b) {
    return a->ended() != b->ended() ? a->ended() : a->job().id < b->job().id;
  });
  if (newest != active_.end() && !(*newest)->ended()) {
    (*newest)->end(std::move(error));
    parts_.codec.ring();
  } else if (!waiting_.empty()) {
    parts_.ledger.leave(*waiting_.back()->state, Stage::waiting, waiting_.back()->client, std::move(error));
    waiting_.pop_back();
  }
  parts_.wake->wait(now_us() + patience_us_);
  patience_us_ = std::min(2 * patience_us_, kMostPatienceUs);
}

bool DecodeLoop::work(int64_t& wake_us) {
  if (const auto stop = inbox_.take(waiting_, preparing_)) end_everything(*stop);
  forget_closed();
  const int64_t now = now_us();
  end_preparing(now);
  wake_us = admit(now);
  if (step(now)) return true;
  wake_us = earlier(wake_us, earliest_deadline(now));
  return false;
}

void DecodeLoop::end_preparing(int64_t now) {
  std::erase_if(preparing_, [](const auto& speech) { return speech->claimed.load(); });
  for (const auto& speech : preparing_) {
    const int64_t deadline_us = speech->state->deadline_us(now);
    const bool late = deadline_us != 0 && now >= deadline_us;
    if (!late && !speech->state->cancelled()) continue;
    const ErrorCode why = late ? ErrorCode::deadline_exceeded : ErrorCode::cancelled;
    if (speech->claim())
      parts_.ledger.leave(*speech->state, Stage::preparing, speech->client, end_error(why));
  }
}

void DecodeLoop::end_everything(const SpeechInbox::Stop& stop) {
  const auto error = [&] { return error_without_fail(stop.code, stop.message); };
  for (const auto& speech : preparing_)
    if (speech->claim()) parts_.ledger.leave(*speech->state, Stage::preparing, speech->client, error());
  while (!waiting_.empty()) {
    parts_.ledger.leave(*waiting_.back()->state, Stage::waiting, waiting_.back()->client, error());
    waiting_.pop_back();
  }
  for (const auto& speech : active_) {
    if (speech->ended()) continue;
    speech->end(error());
    parts_.codec.ring();
  }
}

void DecodeLoop::forget_closed() {
  for (const auto& speech : active_) {
    SpeechJob& job = speech->job();
    if (speech->ended() && job.state->cancelled()) parts_.codec.ring();  // it need not finish the sound
    if (speech->ended() || !job.given_up()) continue;
    speech->end(job.take_codec_error());
    parts_.codec.ring();
  }
  std::erase_if(active_,
                [](const auto& speech) { return speech->job().closed.load(std::memory_order_acquire); });
}

ScheduleLimits DecodeLoop::limits() const {
  return {.max_batch_size = parts_.config.max_batch_size,
          .max_streams = parts_.config.streams(),
          .prefill_columns = prefill_.columns(active_jobs_),
          .page_size = parts_.cache.page_size(),
          .pages_available = pages_.available(),
          .batch_timeout_us = int64_t{parts_.config.batch_timeout_ms} * 1000,
          .batch_grouping = parts_.config.batch_grouping};
}

void DecodeLoop::describe_active(int64_t now) {
  active_jobs_.clear();
  int64_t running = 0, paused = 0, finishing = 0;
  for (const auto& speech : active_) {
    active_jobs_.push_back(speech->describe(now, frame_us_, prefetch_samples_));
    const ActiveJob& job = active_jobs_.back();
    ++(job.finishing ? finishing : job.paused ? paused : running);
  }
  parts_.ledger.set_activity(running, paused, finishing);
  parts_.ledger.set_kv(pages_.statistics());
}

int64_t DecodeLoop::admit(int64_t now) {
  if (waiting_.empty()) return 0;
  describe_active(now);
  waiting_jobs_.clear();
  for (const auto& job : waiting_) {
    waiting_jobs_.push_back({.id = job->id,
                             .client = job->client,
                             .voice = job->voice,
                             .arrival_us = job->arrival_us,
                             .deadline_us = job->state->deadline_us(now),
                             .prompt_columns = job->first_prompt.columns(),
                             .cancelled = job->state->cancelled()});
  }
  const Admission admission = plan_admission(waiting_jobs_, active_jobs_, limits(), now);
  for (const JobEnd& end : admission.ends) end_waiting(end);
  for (const JobId id : admission.admitted) admit_job(id);
  return admission.wake_us;
}

void DecodeLoop::end_waiting(const JobEnd& end) {
  const auto job =
      std::find_if(waiting_.begin(), waiting_.end(), [&](const auto& j) { return j->id == end.id; });
  CHECK(job != waiting_.end(), "job ", end.id, " does not wait");
  parts_.ledger.leave(*(*job)->state, Stage::waiting, (*job)->client, end_error(end.why));
  waiting_.erase(job);
}

void DecodeLoop::admit_job(JobId id) {
  const auto job = std::find_if(waiting_.begin(), waiting_.end(), [&](const auto& j) { return j->id == id; });
  CHECK(job != waiting_.end(), "job ", id, " does not wait");
  auto speech = std::make_unique<ActiveSpeech>(*job, parts_.model);
  parts_.codec.admit(*job);  // from here on the codec loop ends it
  active_.push_back(std::move(speech));
  waiting_.erase(job);
  SpeechJob& admitted = active_.back()->job();
  parts_.ledger.move(Stage::waiting, Stage::active, admitted.client);
  const double since_submit = static_cast<double>(now_us() - admitted.submitted_us) * 1e-6;
  admitted.state->update([&](SpeechSummary& summary) { summary.admitted_s = since_submit; });
  try {
    active_.back()->begin_utterance(pages_);
  } catch (...) {
    fail(*active_.back(), std::current_exception());
  }
}

// Looks up the prefixes of jobs that the plan starts; returns whether there were any.
bool DecodeLoop::attach_prefixes(const std::vector<StepRows>& planned) {
  bool any = false;
  for (const StepRows& rows : planned) {
    ActiveSpeech& speech = find(rows.id);
    if (speech.started()) continue;
    any = true;
    try {
      attach_prefix(speech);
    } catch (...) {
      fail(speech, std::current_exception());
    }
  }
  return any;
}

void DecodeLoop::attach_prefix(ActiveSpeech& speech) {
  const auto copy = [&](PageCopy pages) { parts_.calls.copy_page(ctx_, parts_.cache, pages.from, pages.to); };
  try {
    return speech.attach_prefix(pages_, copy);
  } catch (...) {
    before_retry();
  }
  speech.attach_prefix(pages_, copy);
}

void DecodeLoop::before_retry() {
  parts_.ledger.count_retry();
  if (!parts_.config.drop_cache_on_oom) return;
  pages_.drop_cached();
  parts_.release_memory();
}

// A prefix found in the cache changes what remains to be computed: plan again until no further job starts.
StepPlan DecodeLoop::plan(int64_t now) {
  while (true) {
    describe_active(now);
    StepPlan plan = plan_step(active_jobs_, limits(), now);
    for (const JobEnd& end : plan.ends) find(end.id).end(end_error(end.why));
    if (!plan.ends.empty()) parts_.codec.ring();
    if (!attach_prefixes(plan.rows)) return plan;
  }
}

bool DecodeLoop::step(int64_t now) {
  const StepPlan planned = plan(now);
  for (const JobId id : planned.preempted) {
    find(id).preempt();
    parts_.ledger.count_preemption();
  }
  if (planned.rows.empty()) {
    divide_device(0, 0);
    parts_.codec.put_off_passes(false);
  } else {
    run_rows(planned.rows);
  }
  return !planned.rows.empty() || !planned.preempted.empty() || !planned.ends.empty();
}

void DecodeLoop::run_rows(const std::vector<StepRows>& planned) {
  TraceSpan span("decode step");
  const int64_t start = now_us();
  rows_.clear(), row_owners_.clear();
  for (const StepRows& step : planned) {
    SequenceRows rows;
    ActiveSpeech& speech = find(step.id);
    if (!speech.rows(step, rows)) continue;  // pages were promised by the plan; if not, the next one knows
    rows_.push_back(rows);
    row_owners_.push_back(&speech);
  }
  int64_t speaking = 0, prompt_columns = 0, frames = 0;
  for (const SequenceRows& rows : rows_) speaking += rows.wants_frame, prompt_columns += rows.count - 1;
  divide_device(speaking, prompt_columns);
  parts_.codec.put_off_passes(puts_passes_off(prompt_columns, speaking));
  runner_.run(rows_, [this] { before_retry(); });
  prefill_.measure(prompt_columns, now_us() - start);
  for (size_t i = 0; i < rows_.size(); ++i) {
    frames += rows_[i].wants_frame && !rows_[i].error;
    finish_rows(*row_owners_[i], rows_[i]);
  }
  span.add({{"sequences", rows_.size()}, {"frames", frames}, {"prefill_columns", prompt_columns}});
  parts_.ledger.set_kv(pages_.statistics());
  parts_.codec.ring();
  parts_.ledger.count_step(static_cast<int64_t>(rows_.size()), frames,
                           static_cast<double>(now_us() - start) * 1e-6);
  workspace_bytes_.store(parts_.ctx.workspace->capacity_bytes(), std::memory_order_relaxed);
}

void DecodeLoop::divide_device(int64_t speaking, int64_t prompt_columns) {
  divided_ = is_worth_dividing_ && divides_device(divided_, speaking);
  parts_.codec.divide_device(divided_);
  const bool part = divided_ && !prefers_whole_device(prompt_columns);
  ops::use_share(ctx_, part ? ops::Share::part : ops::Share::whole);
}

void DecodeLoop::finish_rows(ActiveSpeech& speech, const SequenceRows& rows) {
  if (rows.error) return fail(speech, rows.error);
  try {
    if (speech.accept(rows)) finish_utterance(speech);
  } catch (...) {
    fail(speech, std::current_exception());
  }
}

void DecodeLoop::finish_utterance(ActiveSpeech& speech) {
  if (speech.has_next_utterance()) {
    speech.next_utterance();
    speech.begin_utterance(pages_);
  } else if (speech.silent()) {
    speech.end(Error(ErrorCode::invalid_argument,
                     speech.cut() ? "max_new_tokens: so few frames make no sound; allow more"
                                  : "text: the model made no sound of it; try another text, seed or "
                                    "temperature"));
  } else {
    speech.end(std::nullopt);
  }
}

void DecodeLoop::fail(ActiveSpeech& speech, std::exception_ptr error) {
  speech.end(to_error(error));
  parts_.codec.ring();
}

int64_t DecodeLoop::earliest_deadline(int64_t now) const {
  int64_t earliest = 0;
  const auto consider = [&](const SpeechState& state) {
    earliest = earlier(earliest, state.deadline_us(now));
  };
  for (const auto& speech : preparing_)
    if (!speech->claimed.load()) consider(*speech->state);
  for (const auto& job : waiting_) consider(*job->state);
  for (const auto& speech : active_)
    if (!speech->ended()) consider(*speech->job().state);
  return earliest;
}

void DecodeLoop::check_pages() const {
  pages_.check_invariants();
  const int64_t used = pages_.statistics().pages_used;
  CHECK(used == 0, used, " pages are used");
}

ActiveSpeech& DecodeLoop::find(JobId id) {
  const auto found =
      std::find_if(active_.begin(), active_.end(), [&](const auto& s) { return s->job().id == id; });
  CHECK(found != active_.end(), "job ", id, " is not active");
  return **found;
}

}  // namespace shoal::runtime
