#include "runtime/synthesizer.h"

#include <algorithm>
#include <array>
#include <chrono>

#include "base/philox.h"
#include "runtime/utterances.h"

namespace shoal::runtime {
namespace {

constexpr int64_t kPageSize = 32;  // tokens; what the paged cache of many sequences uses too
constexpr int64_t kPrefillRows =
    256;  // rows of one prefill pass: bounds the workspace, reads the weights rarely
constexpr std::array<int64_t, 5> kRamp = {1, 2, 4, 8,
                                          16};  // frames a piece of sound waits for (design section 8)

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Adds the time of its scope to a counter.
class Stopwatch {
 public:
  explicit Stopwatch(double& total_s) : total_s_(total_s), start_s_(now_s()) {}
  ~Stopwatch() { total_s_ += now_s() - start_s_; }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double& total_s_;
  double start_s_;
};

// Utterance 0 speaks with the request's own seed; the others with seeds derived from it.
uint64_t seed_of_utterance(uint64_t seed, int64_t index) {
  if (index == 0) return seed;
  const PhiloxBlock block = philox4x32(seed, {static_cast<uint32_t>(index), 0, 0, 0x7574746fu});
  return (uint64_t{block[0]} << 32) | block[1];
}

}  // namespace

struct Synthesizer::Run {
  const SpeechRequest& request;
  const PcmSink& sink;
  const ProgressHook& progress;
  double start_s = now_s();
  SpeechStatistics statistics;
  size_t ramp = 0;         // position in kRamp
  int64_t released = 0;    // frames of the current utterance that have become sound
  int64_t text_bytes = 0;  // of the whole request
  int64_t text_bytes_done = 0;
  std::vector<float> pcm;

  void report(int64_t utterance_bytes, int64_t frames, int64_t expected_frames) {
    if (!progress) return;
    const double part = std::min(
        1.0, static_cast<double>(frames) / static_cast<double>(std::max<int64_t>(1, expected_frames)));
    const double fraction =
        (static_cast<double>(text_bytes_done) + part * static_cast<double>(utterance_bytes)) /
        static_cast<double>(std::max<int64_t>(1, text_bytes));
    const SpeechProgress state{.fraction = fraction,
                               .frames = statistics.frames + frames,
                               .elapsed_s = now_s() - start_s,
                               .audio_s = statistics.audio_s()};
    if (!progress(state)) fail(ErrorCode::cancelled, "the request was cancelled");
  }
};

Synthesizer::Synthesizer(const SpeechModel& model, ThreadTeam& team)
    : model_(model),
      ctx_{.device = {}, .team = &team, .workspace = &workspace_, .stream = nullptr},
      codec_states_(model.codec(), 1),
      codec_stream_(codec_states_),
      hidden_(DType::f32, {1, model.language_model().config().slow.dim}) {}

SpeechStatistics Synthesizer::speak(const SpeechRequest& request, const PcmSink& sink,
                                    const ProgressHook& progress) {
  validate(request);
  const std::vector<std::string> texts = plan_utterances(request, model_);
  utterances_.clear();

  Run run{.request = request, .sink = sink, .progress = progress};
  run.statistics.sample_rate_hz = static_cast<int>(model_.codec().config().sample_rate_hz);
  for (const std::string& text : texts) run.text_bytes += static_cast<int64_t>(text.size());
  for (const std::string& text : texts) {
    speak_utterance(run, text);
    run.text_bytes_done += static_cast<int64_t>(text.size());
  }
  if (run.statistics.samples == 0) {
    fail(ErrorCode::invalid_argument,
         "text: the model made no sound of it; try another text, seed or temperature");
  }
  run.statistics.total_s = now_s() - run.start_s;
  return run.statistics;
}

void Synthesizer::speak_utterance(Run& run, const std::string& text) {
  const dual_ar::DualAr& model = model_.language_model();
  const text::PromptColumns prompt = build_prompt(run.request, model_, utterances_, text);
  const int64_t limit = dual_ar::prompt_limit(model.config());
  if (prompt.columns() > limit) {
    fail(ErrorCode::too_large, "text: the prompt takes ", prompt.columns(),
         " columns with its references, at most ", limit,
         " leave room for speech; shorten the references or split the text (chunk_length)");
  }
  dual_ar::check_columns(model.config(), prompt.values);
  dual_ar::Sampling sampling = run.request.sampling;
  sampling.seed = seed_of_utterance(sampling.seed, run.statistics.utterances);
  dual_ar::Utterance utterance(model.config(), sampling, prompt.columns(), run.request.max_new_tokens);

  codec_stream_.reset();
  run.released = 0;
  prefill(run, prompt, prompt.columns() + utterance.max_frames());

  // About 1.4 frames a letter at normal speed; only the progress line depends on it.
  const int64_t expected_frames = static_cast<int64_t>(static_cast<double>(text.size()) * 1.4);
  std::vector<int32_t> frame(static_cast<size_t>(model.config().columns()));
  VoiceReference spoken{.text = text, .codes = {}, .frames = 0};
  while (true) {
    {
      const Stopwatch watch(run.statistics.decode_s);
      const dual_ar::FrameRequest request = utterance.next_request();
      model.generate_frames(ctx_, hidden_, {&request, 1}, frame);
    }
    const bool finished = utterance.accept(frame);
    append_speech(utterance, spoken);
    release_frames(run, spoken, finished);
    if (finished) break;
    decode_frame(run, frame, utterance.next_position());
    run.report(static_cast<int64_t>(text.size()), utterance.frame_count(), expected_frames);
  }
  if (utterance.finish_reason() == dual_ar::FinishReason::length)
    run.statistics.cut_at_frames = utterance.max_frames();
  run.statistics.frames += spoken.frames;
  ++run.statistics.utterances;
  utterances_.push_back(std::move(spoken));
}

ops::BatchPlan Synthesizer::plan_rows(int64_t first_position, int64_t rows) {
  row_offsets_ = {0, static_cast<int32_t>(rows)};
  positions_.resize(static_cast<size_t>(rows));
  for (int64_t row = 0; row < rows; ++row)
    positions_[static_cast<size_t>(row)] = static_cast<int32_t>(first_position + row);
  return {.rows = {row_offsets_},
          .positions = positions_,
          .page_table = page_table_,
          .pages_per_sequence = static_cast<int64_t>(page_table_.size()),
          .page_size = kPageSize};
}

void Synthesizer::prefill(Run& run, const text::PromptColumns& prompt, int64_t positions_needed) {
  const Stopwatch watch(run.statistics.prefill_s);
  const dual_ar::DualAr& model = model_.language_model();
  const int64_t pages = (positions_needed + kPageSize - 1) / kPageSize;
  if (!cache_ || cache_->pages() < pages) {
    cache_.reset();
    cache_.emplace(model.config(), pages, kPageSize, model.dtype());
    page_table_.resize(static_cast<size_t>(pages));
    for (int64_t page = 0; page < pages; ++page)
      page_table_[static_cast<size_t>(page)] = static_cast<int32_t>(page);
  }
  const int64_t width = model.config().columns();
  for (int64_t done = 0; done < prompt.columns(); done += kPrefillRows) {
    const int64_t rows = std::min(kPrefillRows, prompt.columns() - done);
    const auto columns = std::span(prompt.values)
                             .subspan(static_cast<size_t>(done * width), static_cast<size_t>(rows * width));
    model.forward_slow(ctx_, plan_rows(done, rows), columns, *cache_, hidden_);
  }
  run.statistics.prompt_columns += prompt.columns();
}

void Synthesizer::decode_frame(Run& run, std::span<const int32_t> frame, int64_t position) {
  const Stopwatch watch(run.statistics.decode_s);
  model_.language_model().forward_slow(ctx_, plan_rows(position, 1), frame, *cache_, hidden_);
}

void Synthesizer::release_frames(Run& run, const VoiceReference& spoken, bool everything) {
  const int64_t waiting = spoken.frames - run.released;
  if (waiting == 0 || (!everything && waiting < kRamp[run.ramp])) return;
  const dac::Codec& codec = model_.codec();
  const int64_t codebooks = codec.config().num_codebooks();
  run.pcm.resize(static_cast<size_t>(waiting * codec.config().samples_per_frame()));
  {
    const Stopwatch watch(run.statistics.codec_s);
    const std::array<int32_t, 2> offsets = {0, static_cast<int32_t>(waiting)};
    dac::CodecStream* const stream = &codec_stream_;
    const auto codes = std::span(spoken.codes).subspan(static_cast<size_t>(run.released * codebooks));
    codec.decode_streams(ctx_, {&stream, 1}, {offsets}, codes, run.pcm);
  }
  run.released = spoken.frames;
  run.ramp = std::min(run.ramp + 1, kRamp.size() - 1);
  if (run.statistics.samples == 0) run.statistics.first_audio_s = now_s() - run.start_s;
  run.statistics.samples += static_cast<int64_t>(run.pcm.size());
  run.sink(run.pcm);
}

}  // namespace shoal::runtime
