#include "runtime/families/language/preparer.h"

#include <algorithm>
#include <atomic>
#include <future>

#include "base/file.h"
#include "runtime/engine/speaker_voices.h"
#include "runtime/voices/reference_clip.h"

namespace shoal::runtime {
namespace {

constexpr int64_t kMostClipBytes = int64_t{64} << 20;  // of one request
constexpr size_t kMostReferences = 16;

// All of the clip but its codes.
VoiceReference reference_of(const ClipCodes& codes, VoiceReference reference) {
  reference.codes.assign(codes.values().begin(), codes.values().end());
  reference.frames = codes.frames();
  return reference;
}

// By number: the same voices give the same prompt, however the caller listed them.
std::vector<SpeakerVoice> in_order(std::vector<SpeakerVoice> voices) {
  std::ranges::sort(voices, {}, &SpeakerVoice::speaker);
  return voices;
}

}  // namespace

// A request whose clips are being encoded.
struct Preparer::Preparation {
  SpeechRequest request;
  std::shared_ptr<SpeechState> state;
  uint64_t seed = 0;
  Done done;
  std::vector<VoiceReference> references;  // clips first, filled in as they are encoded
  // Clips that have not been answered, and one more until all have been asked for.
  std::atomic<size_t> missing{1};

  void note(std::exception_ptr failure) {
    const std::lock_guard lock(mutex);
    if (!error) error = std::move(failure);
  }
  void take(size_t clip, const VoiceReference& named, const ClipEncoder::Result& result) {
    try {
      if (result.error) std::rethrow_exception(result.error);
      references[clip] = reference_of(*result.codes, named);
    } catch (...) {
      note(std::current_exception());
    }
  }

  std::mutex mutex;  // guards error
  std::exception_ptr error;
};

Preparer::Preparer(const SpeechModel& model, const NamedVoices& voices, ClipEncoder& encoder)
    : model_(model), voices_(voices), encoder_(encoder) {}

void Preparer::check_encoded(const SpeechRequest& request) const {
  const auto codebooks = static_cast<size_t>(model_.codec().config().num_codebooks());
  for (const ReferenceCodes& reference : request.encoded_references) {
    check_transcript(reference.text, "encoded reference");
    if (reference.codes.empty() || reference.codes.size() % codebooks != 0)
      fail(ErrorCode::invalid_argument, "encoded reference: expected frames of ", codebooks, " codes, got ",
           reference.codes.size(), " codes");
  }
  if (request.references.size() + request.encoded_references.size() > kMostReferences)
    fail(ErrorCode::too_large, "references: at most ", kMostReferences, " are accepted, got ",
         request.references.size() + request.encoded_references.size());
}

// Hashed as it was read: a file that somebody replaces meanwhile is one clip or the other.
Preparer::ClipSource Preparer::source_of(std::string audio, std::string name, const std::string& text) {
  return {.hash = hash_clip(std::as_bytes(std::span(audio))),
          .audio = std::move(audio),
          .name = std::move(name),
          .text = text,
          .speaker = {}};
}

// The clips of a request, within its limits.
class Preparer::Sources {
 public:
  void add(ClipSource source) {
    bytes_ += static_cast<int64_t>(source.audio.size());
    if (bytes_ > kMostClipBytes)
      fail(ErrorCode::too_large, source.name, ": the clips of a request may have ", kMostClipBytes,
           " bytes together");
    sources_.push_back(std::move(source));
  }

  void add_voice(const NamedVoices& voices, const std::string& name, std::optional<int> speaker) {
    const size_t clips_before = sources_.size();
    const int64_t bytes_before = bytes_;
    voices.look_at(name, [&] {
      sources_.resize(clips_before);
      bytes_ = bytes_before;
      const std::vector<VoiceClip> clips = voices.clips(name);
      if (clips_before + clips.size() > kMostReferences)
        fail(ErrorCode::too_large, "voice \"", name, "\": has ", clips.size(), " clips, at most ",
             kMostReferences, clips_before > 0 ? " of all voices together" : "", " are accepted");
      for (const VoiceClip& clip : clips) {
        add(source_of(read_file(clip.audio_path, kMostClipBytes), clip.audio_path, clip.transcript));
        sources_.back().speaker = speaker;
      }
    });
  }

  std::vector<ClipSource> take() && { return std::move(sources_); }

 private:
  std::vector<ClipSource> sources_;
  int64_t bytes_ = 0;
};

std::vector<Preparer::ClipSource> Preparer::sources_of(const SpeechRequest& request) const {
  Sources sources;
  if (!request.voice.empty()) sources.add_voice(voices_, request.voice, {});
  for (const SpeakerVoice& speaker : in_order(request.voices))
    if (!speaker.voice.empty()) sources.add_voice(voices_, speaker.voice, speaker.speaker);
  for (size_t i = 0; i < request.references.size(); ++i) {
    const ReferenceClip& clip = request.references[i];
    std::string name = concat("reference ", i + 1);
    check_transcript(clip.text, name);
    ClipSource source = source_of(clip.audio, std::move(name), clip.text);
    source.speaker = clip.speaker;
    sources.add(std::move(source));
  }
  return std::move(sources).take();
}

// Throws Error(unsupported) instead if the request is strict.
void Preparer::warn_of_speakers(const Preparation& preparation, const SpeechPlan& plan) const {
  if (model_.language_model().config().family != dual_ar::Family::s2) return;
  const auto remark = remark_on_speakers(preparation.request, plan.references);
  if (!remark) return;
  if (preparation.request.strict) fail(ErrorCode::unsupported, *remark);
  preparation.state->update([&](SpeechSummary& summary) { summary.warnings.push_back(*remark); });
}

std::shared_ptr<SpeechJob> Preparer::make_job(Preparation& preparation) const {
  SpeechPlan plan =
      plan_speech(preparation.request, model_, std::move(preparation.references), preparation.seed);
  warn_of_speakers(preparation, plan);
  text::PromptColumns prompt = build_prompt(plan, model_, {}, plan.utterances.front());
  auto job = std::make_shared<SpeechJob>(std::move(plan), std::move(prompt), preparation.state);
  job->voice = voice_of_prompt(job->plan, {});
  const SpeechRequest& request = preparation.request;
  job->whole = request.delivery == Delivery::whole;
  job->speed = request.speed;
  if (request.speed != 1 || request.volume != 1)
    job->prosody.emplace(preparation.state->sample_rate_hz(), request.speed, request.volume);
  return job;
}

std::shared_ptr<SpeechJob> Preparer::prepare(const SpeechRequest& request, std::shared_ptr<SpeechState> state,
                                             uint64_t seed, Done done) {
  check_encoded(request);
  std::vector<ClipSource> sources = sources_of(request);
  auto preparation = std::make_shared<Preparation>();
  preparation->request = request;
  preparation->request.references.clear();  // their bytes have been moved
  preparation->state = std::move(state);
  preparation->seed = seed;
  preparation->done = std::move(done);
  preparation->references.resize(sources.size());
  for (const ReferenceCodes& encoded : request.encoded_references) {
    const auto codebooks = static_cast<size_t>(model_.codec().config().num_codebooks());
    preparation->references.push_back({.text = encoded.text,
                                       .codes = encoded.codes,
                                       .frames = static_cast<int64_t>(encoded.codes.size() / codebooks),
                                       .speaker = encoded.speaker});
  }
  if (sources.empty()) return make_job(*preparation);
  for (size_t i = 0; i < sources.size(); ++i) {
    ClipSource& source = sources[i];
    ++preparation->missing;
    try {
      VoiceReference named{.text = source.text, .codes = {}, .speaker = source.speaker};
      ClipEncoder::Listener listener{
          .done =
              [this, preparation, i, named = std::move(named)](const auto& result) {
                preparation->take(i, named, result);
                one_less(*preparation);
              },
          .gone = [preparation] { return preparation->state->ended(); }};
      encoder_.encode(source.hash, std::move(source.audio), std::move(source.name), std::move(listener));
    } catch (...) {
      preparation->note(std::current_exception());
      one_less(*preparation);
    }
  }
  one_less(*preparation);
  return nullptr;
}

void Preparer::one_less(Preparation& preparation) const {
  if (preparation.missing.fetch_sub(1) != 1) return;
  std::shared_ptr<SpeechJob> job;
  std::exception_ptr error = preparation.error;
  try {
    if (!error) job = make_job(preparation);
  } catch (...) {
    error = std::current_exception();
  }
  preparation.done(std::move(job), error);
}

std::shared_ptr<const ClipCodes> Preparer::encode(const std::string& audio) {
  // Shared, because the encoder's thread may still be inside set_value() when this one continues.
  const auto promise = std::make_shared<std::promise<ClipEncoder::Result>>();
  std::future<ClipEncoder::Result> future = promise->get_future();
  encoder_.encode(hash_clip(std::as_bytes(std::span(audio))), audio, "audio",
                  {.done = [promise](const ClipEncoder::Result& result) { promise->set_value(result); },
                   .gone = [] { return false; }});
  ClipEncoder::Result result = future.get();
  if (result.error) std::rethrow_exception(result.error);
  return std::move(result.codes);
}

}  // namespace shoal::runtime
