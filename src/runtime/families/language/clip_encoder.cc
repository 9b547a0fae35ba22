#include "runtime/families/language/clip_encoder.h"

#include <algorithm>
#include <utility>

#include "audio/clip.h"
#include "audio/resample.h"
#include "base/trace.h"
#include "runtime/engine/failure.h"
#include "runtime/voices/reference_clip.h"

namespace shoal::runtime {

ClipEncoder::ClipEncoder(const SpeechModel& model, CodeStore& store, ClipWork& work)
    : model_(model), store_(store), work_(work) {
  in_work_.reserve(kClipsAtATime);
  finished_.reserve(kClipsAtATime);
  thread_ = std::thread([this] { run(); });
}

ClipEncoder::~ClipEncoder() {
  {
    const std::lock_guard lock(mutex_);
    exit_ = true;
  }
  changed_.notify_all();
  thread_.join();
  const Error error = error_without_fail(ErrorCode::unavailable, "the engine is stopping");
  const Result stopping{.codes = nullptr, .error = std::make_exception_ptr(error)};
  for (const Clip& clip : waiting_)
    for (const Listener& listener : clip.listeners) listener.done(stopping);
}

// A clip whose listeners have all gone is skipped, so that cancelled requests cost neither time nor memory.
void ClipEncoder::forget_unwanted() {
  std::erase_if(waiting_, [](const Clip& clip) {
    return std::all_of(clip.listeners.begin(), clip.listeners.end(),
                       [](const Listener& listener) { return listener.gone(); });
  });
}

void ClipEncoder::encode(const ClipHash& hash, std::string audio, std::string name, Listener listener) {
  std::shared_ptr<const ClipCodes> known = store_.find(hash);  // may read the disk: not under the lock
  if (!known) known = find_or_queue(hash, audio, name, listener);
  if (known) listener.done({.codes = std::move(known), .error = nullptr});
}

// Takes its last three arguments over unless it returns codes.
std::shared_ptr<const ClipCodes> ClipEncoder::find_or_queue(const ClipHash& hash, std::string& audio,
                                                            std::string& name, Listener& listener) {
  {
    const std::lock_guard lock(mutex_);
    for (std::vector<Clip>* clips : {&waiting_, &in_work_}) {
      const auto same =
          std::find_if(clips->begin(), clips->end(), [&](const Clip& c) { return c.hash == hash; });
      if (same == clips->end()) continue;
      same->listeners.push_back(std::move(listener));
      return nullptr;
    }
    if (auto known = store_.find(hash)) return known;  // it may have been finished since
    if (!model_.codec().can_encode())
      fail(ErrorCode::unsupported, name, ": the model was loaded without the codec's encoder (with_encoder)");
    Clip clip{.hash = hash, .audio = std::move(audio), .name = std::move(name), .listeners = {}};
    clip.listeners.push_back(std::move(listener));
    forget_unwanted();
    waiting_.push_back(std::move(clip));
  }
  changed_.notify_all();
  return nullptr;
}

void ClipEncoder::run() {
  while (true) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return exit_ || !waiting_.empty(); });
      if (exit_) return;
      forget_unwanted();
      const auto count = static_cast<std::ptrdiff_t>(std::min(waiting_.size(), kClipsAtATime));
      for (std::ptrdiff_t i = 0; i < count; ++i)
        in_work_.push_back(std::move(waiting_[static_cast<size_t>(i)]));
      waiting_.erase(waiting_.begin(), waiting_.begin() + count);
    }
    results_.fill({});
    try {
      encode_in_work();
    } catch (...) {
      for (Result& result : results_)
        if (!result.codes && !result.error) result.error = std::current_exception();
    }
    {
      const std::lock_guard lock(mutex_);
      finished_.swap(in_work_);
    }
    for (size_t i = 0; i < finished_.size(); ++i)
      for (const Listener& listener : finished_[i].listeners) listener.done(results_[i]);
    finished_.clear();
  }
}

std::vector<float> ClipEncoder::samples_of(const Clip& clip) const {
  const ReferenceLimits limits;
  const audio::Clip sound = audio::decode_clip(std::as_bytes(std::span(clip.audio)), clip.name,
                                               {.max_seconds = limits.max_seconds});
  check_sound(sound, clip.name, limits);
  return audio::resample(sound.samples, sound.sample_rate_hz,
                         static_cast<int>(model_.codec().config().sample_rate_hz));
}

std::vector<std::vector<int32_t>> ClipEncoder::encode_together(ops::Context& ctx,
                                                               const std::vector<std::vector<float>>& clips) {
  const dac::Codec& codec = model_.codec();
  const auto codes_of = [&](const std::vector<float>& clip) {
    return static_cast<size_t>(codec.frames_for(static_cast<int64_t>(clip.size())) *
                               codec.config().num_codebooks());
  };
  std::vector<int32_t> offsets = {0};
  std::vector<float> samples;
  size_t count = 0;
  for (const std::vector<float>& clip : clips) {
    samples.insert(samples.end(), clip.begin(), clip.end());
    offsets.push_back(static_cast<int32_t>(samples.size()));
    count += codes_of(clip);
  }
  std::vector<int32_t> all(count);
  codec.encode_batch(ctx, {offsets}, samples, all);
  std::vector<std::vector<int32_t>> codes;
  auto begin = all.begin();
  for (const std::vector<float>& clip : clips) {
    const auto end = begin + static_cast<std::ptrdiff_t>(codes_of(clip));
    codes.emplace_back(begin, end);
    begin = end;
  }
  return codes;
}

// One for each clip; a clip that cannot be decoded has its error in results_.
std::vector<std::vector<float>> ClipEncoder::samples_in_work(ThreadTeam& team) {
  std::vector<std::vector<float>> samples(in_work_.size());
  team.parallel_for(std::ssize(in_work_), 1, [&](int64_t begin, int64_t, int) {
    const auto clip = static_cast<size_t>(begin);
    try {
      samples[clip] = samples_of(in_work_[clip]);
    } catch (...) {
      results_[clip].error = std::current_exception();
    }
  });
  return samples;
}

// A clip that cannot be decoded fails alone; if a batch cannot be encoded, each clip is tried by itself.
// -> codes of each clip; none if it failed.
std::vector<std::vector<int32_t>> ClipEncoder::codes_in_work(ops::Context& ctx,
                                                             std::vector<std::vector<float>> decoded) {
  const TraceSpan span("clip encoding", {{"clips", in_work_.size()}});
  std::vector<std::vector<float>> samples;
  std::vector<size_t> whose;  // clip, for each of samples
  for (size_t i = 0; i < in_work_.size(); ++i) {
    if (results_[i].error) continue;
    samples.push_back(std::move(decoded[i]));
    whose.push_back(i);
  }
  std::vector<std::vector<int32_t>> codes(in_work_.size());
  try {
    std::vector<std::vector<int32_t>> together = encode_together(ctx, samples);
    for (size_t i = 0; i < whose.size(); ++i) codes[whose[i]] = std::move(together[i]);
    return codes;
  } catch (const std::exception&) {  // the faulty clip fails below
  }
  for (size_t i = 0; i < whose.size(); ++i) {
    try {
      codes[whose[i]] = model_.codec().encode(ctx, samples[i]);
    } catch (...) {
      results_[whose[i]].error = std::current_exception();
    }
  }
  return codes;
}

void ClipEncoder::encode_in_work() {
  std::vector<std::vector<float>> samples;
  std::vector<std::vector<int32_t>> codes;
  work_.run([&](ops::Context& ctx) { samples = samples_in_work(*ctx.team); });
  work_.run([&](ops::Context& ctx) { codes = codes_in_work(ctx, std::move(samples)); });
  for (size_t i = 0; i < in_work_.size(); ++i) {
    if (results_[i].error) continue;
    try {
      results_[i].codes = store_.put(in_work_[i].hash, {codes[i].begin(), codes[i].end()});
    } catch (...) {
      results_[i].error = std::current_exception();
    }
  }
}

}  // namespace shoal::runtime
