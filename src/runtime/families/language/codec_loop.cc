#include "runtime/families/language/codec_loop.h"

#include <algorithm>

#include "base/log.h"
#include "base/trace.h"
#include "ops/device_state.h"
#include "ops/stream.h"
#include "runtime/engine/failure.h"

namespace shoal::runtime {
namespace {

// Frames of one pass: enough for the codec to be efficient, but not so many that a starving stream waits long
// or the workspace becomes large. A GPU is efficient with many.
constexpr int64_t kLeastFramesPerPass = 16, kMostFramesPerPass = 64, kMostFramesOfDevice = 512;
// On a CPU, where a frame alone takes up to 2.5 times what it takes among many (docs/perf/notebook-cpu.md).
constexpr int64_t kWorthAPass = 8;
static_assert(kWorthAPass <= kLeastFramesPerPass);
constexpr double kPassUs = 50'000, kPassOfDeviceUs = 20'000;

// Rounds in a row that may fail outside of the codec before the newest stream pays for it, and how long the
// loop then leaves the processor to others.
constexpr int kFailedPasses = 3;
constexpr int64_t kPassPatienceUs = 1000;

}  // namespace

CodecLoop::CodecLoop(const Parts& parts)
    : parts_(parts),
      ctx_(parts.ctx),
      frame_us_(static_cast<int64_t>(1e6 / parts.model.codec().config().frames_per_second())),
      hop_(parts.model.codec().config().samples_per_frame()),
      codebooks_(parts.model.codec().config().num_codebooks()) {
  const auto streams = static_cast<size_t>(parts.states.max_streams());
  incoming_.reserve(streams);
  streams_.reserve(streams);
  jobs_.reserve(streams);
  batch_.reserve(streams);
  targets_.reserve(streams);
  if (parts_.own_thread) thread_ = std::thread([this] { run(); });
}

CodecLoop::~CodecLoop() {
  exit_.store(true);
  ring();
  if (thread_.joinable()) thread_.join();
}

void CodecLoop::admit(std::shared_ptr<SpeechJob> job) {
  {
    const std::lock_guard lock(incoming_mutex_);
    CHECK(incoming_.size() < incoming_.capacity(), "more jobs than codec streams");
    incoming_.push_back(std::move(job));
  }
  ring();
}

void CodecLoop::put_off_passes(bool off) {
  if (!runs_beside_steps()) return;
  const bool before = put_off_.exchange(off, std::memory_order_relaxed);
  if (before && !off) ring();
}

bool CodecLoop::runs_beside_steps() const {
  return parts_.own_thread && ops::computes_by_itself(parts_.ctx.device);
}

void CodecLoop::run() {
  while (!exit_.load()) {
    int64_t wake_us = 0;
    if (!round(wake_us)) wake_.wait(wake_us);
  }
}

bool CodecLoop::round(int64_t& wake_us) noexcept {
  try {
    const bool busy = pass();
    failed_rounds_ = 0;
    wake_us = earlier(earliest_deadline(), urgent_passes_.ends_us());
    return busy;
  } catch (...) {
    // Whatever was decoded has been delivered: the next round can start from the same state.
    Error error = to_error(std::current_exception());
    log(LogLevel::error, "a round of the codec loop failed: ", error.message());
    parts_.ledger.count_retry();
    if (++failed_rounds_ < kFailedPasses) return true;
    failed_rounds_ = 0;
    if (!streams_.empty()) fail(streams_.back(), std::move(error));
    wake_us = now_us() + kPassPatienceUs;
    return false;
  }
}

bool CodecLoop::pass() {
  take_incoming();
  settle();
  jobs_.clear();
  const int64_t now = now_us();
  for (const Stream& stream : streams_) jobs_.push_back(describe(stream, now));
  const bool only_urgent =
      runs_beside_steps() && urgent_passes_.next(put_off_.load(std::memory_order_relaxed), jobs_, now);
  const std::vector<CodecPiece> pieces = plan_codec(jobs_, limits(only_urgent));
  if (pieces.empty()) return false;
  decode(pieces);
  return true;
}

// The frames of a pass are limited by time: no starving stream waits longer than that.
CodecLimits CodecLoop::limits(bool only_urgent) const {
  const bool of_device = ops::computes_by_itself(ctx_.device);
  CodecLimits limits{.frame_us = frame_us_,
                     .max_frames_per_pass = kLeastFramesPerPass,
                     .worth_a_pass = of_device ? 1 : kWorthAPass,
                     .only_urgent = only_urgent};
  if (frame_cost_us_ == 0) return limits;
  limits.max_frames_per_pass =
      std::clamp(static_cast<int64_t>((of_device ? kPassOfDeviceUs : kPassUs) / frame_cost_us_),
                 kLeastFramesPerPass, of_device ? kMostFramesOfDevice : kMostFramesPerPass);
  return limits;
}

void CodecLoop::take_incoming() {
  const std::lock_guard lock(incoming_mutex_);
  while (!incoming_.empty()) {
    streams_.push_back(
        {.job = incoming_.back(), .codec = std::optional<dac::CodecStream>(std::in_place, parts_.states)});
    incoming_.pop_back();
  }
}

int64_t CodecLoop::earliest_deadline() const {
  int64_t earliest = 0;
  const int64_t now = now_us();
  for (const Stream& stream : streams_) {
    if (!stream.job->generation_ended()) continue;  // the decode loop watches it
    earliest = earlier(earliest, stream.job->state->deadline_us(now));
  }
  return earliest;
}

// Moves every stream on to its next utterance, and closes those that are done. While a job is still
// generating, the decode loop notices its end.
void CodecLoop::settle() {
  const int64_t now = now_us();
  for (Stream& stream : streams_) {
    SpeechJob& job = *stream.job;
    while (move_on(stream)) {
    }
    if (!job.generation_ended()) continue;
    if (job.failed()) {
      close(stream, job.take_error());
    } else if (job.given_up()) {
      close(stream, job.take_codec_error());
    } else if (job.state->cancelled()) {  // samples may have been dropped
      close(stream, end_error(ErrorCode::cancelled));
    } else if (stream.utterance == job.plan.utterances.size()) {
      close(stream, give_rest(stream));
    } else if (const int64_t end_us = job.state->deadline_us(now); end_us != 0 && now >= end_us) {
      close(stream, end_error(ErrorCode::deadline_exceeded));
    }
  }
  std::erase_if(streams_, [](const Stream& stream) { return stream.job->closed.load(); });
}

bool CodecLoop::move_on(Stream& stream) {
  const SpeechJob& job = *stream.job;
  const auto utterance = static_cast<int64_t>(stream.utterance);
  if (job.closed_utterances.load(std::memory_order_acquire) <= utterance) return false;
  if (stream.decoded < job.published[stream.utterance].load(std::memory_order_acquire)) return false;
  ++stream.utterance;
  stream.decoded = stream.shaped = 0;
  stream.codec->reset();
  return true;
}

void CodecLoop::close(Stream& stream, std::optional<Error> error) {
  SpeechJob& job = *stream.job;
  stream.codec.reset();
  job.state->keep_codes(std::move(job.spoken));
  parts_.ledger.leave(*job.state, Stage::active, job.client, std::move(error));
  job.closed.store(true, std::memory_order_release);
  parts_.decode_loop->ring();
}

void CodecLoop::fail(Stream& stream, Error error) {
  if (stream.job->given_up()) return;
  stream.job->give_up(std::move(error));
  parts_.decode_loop->ring();
}

int64_t CodecLoop::lead_us(const Stream& stream, int64_t now) const {
  if (stream.samples == 0) return 0;
  return stream.samples * frame_us_ / hop_ - (now - stream.first_us);
}

CodecJob CodecLoop::describe(const Stream& stream, int64_t now) const {
  const SpeechJob& job = *stream.job;
  CodecJob described{.id = job.id,
                     .whole = job.whole,
                     .started = stream.samples > 0,
                     .lead_us = lead_us(stream, now),
                     .ran_dry = stream.ran_dry,
                     .speed = job.speed};
  if (stream.utterance == job.plan.utterances.size() || job.state->cancelled() || job.given_up())
    return described;
  // Check closed before count: then the count of a closed utterance is final.
  described.ended =
      job.closed_utterances.load(std::memory_order_acquire) > static_cast<int64_t>(stream.utterance);
  described.waiting_frames = job.published[stream.utterance].load(std::memory_order_acquire) - stream.decoded;
  return described;
}

CodecLoop::Stream& CodecLoop::find(JobId id) {
  const auto found =
      std::find_if(streams_.begin(), streams_.end(), [&](const Stream& s) { return s.job->id == id; });
  CHECK(found != streams_.end(), "job ", id, " has no stream");
  return *found;
}

void CodecLoop::decode(const std::vector<CodecPiece>& pieces) {
  const int64_t start = now_us();
  int64_t frames = 0;
  for (const CodecPiece& piece : pieces) frames += piece.frames;
  const TraceSpan span("codec pass", {{"streams", pieces.size()}, {"frames", frames}});
  targets_.clear();
  for (const CodecPiece& piece : pieces) targets_.push_back(find(piece.id).decoded + piece.frames);
  ops::use_share(ctx_, divided_.load(std::memory_order_relaxed) ? ops::Share::part : ops::Share::whole);
  try {
    decode_together(pieces);
  } catch (...) {
    // The state of these streams is unknown: each decodes its utterance again by itself from the start, and
    // samples that were already delivered are dropped.
    log(LogLevel::warning, "a pass of the codec failed, its streams are decoded one by one: ",
        to_error(std::current_exception()).message());
    parts_.ledger.count_retry();
    for (size_t i = 0; i < pieces.size(); ++i) decode_alone(find(pieces[i].id), targets_[i]);
  }
  const auto took_us = static_cast<double>(now_us() - start);
  const double cost = took_us / static_cast<double>(frames);
  frame_cost_us_ = frame_cost_us_ == 0 ? cost : frame_cost_us_ * 0.9 + cost * 0.1;
  parts_.ledger.count_codec_pass(took_us * 1e-6, static_cast<double>(frames * frame_us_) * 1e-6);
  workspace_bytes_.store(ctx_.workspace->capacity_bytes(), std::memory_order_relaxed);
}

void CodecLoop::decode_together(const std::vector<CodecPiece>& pieces) {
  batch_.clear(), codes_.clear();
  offsets_.assign(1, 0);
  for (const CodecPiece& piece : pieces) {
    Stream& stream = find(piece.id);
    const int32_t* first = stream.job->spoken[stream.utterance].codes.data() + stream.decoded * codebooks_;
    codes_.insert(codes_.end(), first, first + piece.frames * codebooks_);
    offsets_.push_back(offsets_.back() + static_cast<int32_t>(piece.frames));
    batch_.push_back(&*stream.codec);
  }
  pcm_.resize(static_cast<size_t>(offsets_.back() * hop_));
  parts_.calls.decode_streams(ctx_, batch_, {offsets_}, codes_, pcm_);
  for (size_t i = 0; i < pieces.size(); ++i) {
    const auto begin = static_cast<size_t>(offsets_[i] * hop_);
    deliver(find(pieces[i].id), pieces[i].frames,
            std::span(pcm_).subspan(begin, static_cast<size_t>(pieces[i].frames * hop_)));
  }
}

void CodecLoop::decode_alone(Stream& stream, int64_t target) {
  if (stream.decoded == target) return;  // had been delivered
  try {
    const int32_t* codes = stream.job->spoken[stream.utterance].codes.data();
    dac::CodecStream* const one[] = {&*stream.codec};
    stream.codec->reset();
    while (stream.codec->frames_done() < target) {
      const int64_t done = stream.codec->frames_done();
      const int64_t until = done < stream.decoded ? stream.decoded : target;
      const int64_t frames = std::min(kLeastFramesPerPass, until - done);
      const int32_t offsets[] = {0, static_cast<int32_t>(frames)};
      pcm_.resize(static_cast<size_t>(frames * hop_));
      parts_.calls.decode_streams(
          ctx_, one, {offsets},
          std::span(codes + done * codebooks_, static_cast<size_t>(frames * codebooks_)), pcm_);
      if (done >= stream.decoded) deliver(stream, frames, pcm_);
    }
  } catch (...) {
    fail(stream, to_error(std::current_exception()));
  }
}

void CodecLoop::deliver(Stream& stream, int64_t frames, std::span<const float> pcm) {
  if (std::optional<Prosody>& prosody = stream.job->prosody) {
    // A piece that could not be given is decoded again, perhaps in other pieces: it is not shaped twice.
    const int64_t known = std::clamp<int64_t>(stream.shaped - stream.decoded, 0, frames);
    prosody->add(pcm.subspan(static_cast<size_t>(known * hop_)));
    stream.shaped = std::max(stream.shaped, stream.decoded + frames);
    give(stream, prosody->sound());
    prosody->drop();
  } else {
    give(stream, pcm);
  }
  stream.decoded += frames;
}

// After the last frame: delivers what the prosody still holds. Returns the error that ends the speech.
std::optional<Error> CodecLoop::give_rest(Stream& stream) {
  SpeechJob& job = *stream.job;
  if (!job.prosody) return std::nullopt;
  try {
    job.prosody->add_rest();
    give(stream, job.prosody->sound());
  } catch (...) {
    return to_error(std::current_exception());
  }
  if (job.state->cancelled()) return end_error(ErrorCode::cancelled);  // samples may have been dropped
  return std::nullopt;
}

void CodecLoop::give(Stream& stream, std::span<const float> sound) {
  if (sound.empty()) return;
  SpeechJob& job = *stream.job;
  const int64_t now = now_us();
  job.state->append(sound);
  if (stream.samples == 0) {
    stream.first_us = now;
  } else if (!job.whole) {
    parts_.ledger.count_gap(static_cast<double>(now - stream.last_us) * 1e-6);
    if (lead_us(stream, now) < 0) {
      stream.ran_dry = true;
      parts_.ledger.count_underrun();
      job.state->update([](SpeechSummary& summary) { ++summary.underruns; });
    }
  }
  stream.last_us = now;
  stream.samples += static_cast<int64_t>(sound.size());
}

}  // namespace shoal::runtime
