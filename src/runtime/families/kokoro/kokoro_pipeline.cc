#include "runtime/families/kokoro/kokoro_pipeline.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "ops/device_check.h"
#include "ops/device_choice.h"
#include "ops/device_state.h"
#include "runtime/engine/device_memory.h"
#include "runtime/engine/failure.h"
#include "runtime/engine/request_deadline.h"
#include "runtime/engine/request_text.h"
#include "runtime/engine/silent_speech.h"
#include "runtime/engine/useful_threads.h"
#include "runtime/families/kokoro/kokoro_memory.h"
#include "shoal/seeds.h"

namespace shoal::runtime {
namespace {

constexpr int kWarmUpPhonemes = 60;

phonemes::FrontEndOptions front_end_options(const EngineConfig& config) {
  phonemes::FrontEndOptions options;
  options.espeak.program = config.phonemizer;
  options.espeak.helpers = config.phonemizer_helpers;
  options.espeak.timeout_ms = config.phonemizer_timeout_ms;
  options.dictionaries = config.dictionaries_dir;
  return options;
}

std::unique_ptr<const KokoroModel> load(const EngineConfig& config, ops::Context& ctx) {
  return KokoroModel::load(config.model, config.precision, ctx);
}

}  // namespace

KokoroPipeline::KokoroPipeline(const EngineConfig& config, const MakeModel& make_model,
                               const MakeCalls& make_calls)
    : config_(config),
      device_(ops::choose_device(config.device)),
      device_name_(ops::describe(device_)),
      team_(useful_threads(config.threads, ThreadTeam::available_cpus())),
      execution_(device_, team_, {.record = config.cuda_graphs}),
      memory_available_(memory_available(device_)),
      model_(make_model ? make_model(config, execution_.context()) : load(config, execution_.context())),
      calls_(make_calls ? make_calls(*model_, execution_.context())
                        : std::make_unique<KokoroCalls>(model_->network(), execution_.context())),
      front_end_(front_end_options(config)),
      ledger_(config.max_queue, std::min(config.max_queue, 2 * config.max_batch_size)) {
  check_defaults();
  reserve_workspace();
  loop_.emplace(BatchLoop::Parts{.config = config_,
                                 .model = *model_,
                                 .calls = *calls_,
                                 .execution = execution_,
                                 .ledger = ledger_,
                                 .wake = wake_});
  reader_.emplace(front_end_, *model_, config.phonemizer_helpers, [wake = wake_] { wake->ring(); });
}

KokoroPipeline::~KokoroPipeline() {
  close();
  if (loop_) cancel_all();
  ledger_.wait_until_empty(0);
}

// So that the error does not wait for the first request without a voice.
void KokoroPipeline::check_defaults() const {
  const std::string& language = config_.default_language;
  if (!config_.default_voice.empty()) model_->voice(config_.default_voice);
  if (language.empty()) return;
  const char letter = phonemes::letter_of(phonemes::parse_language(language));
  if (config_.default_voice.empty()) model_->default_voice(letter);
}

void KokoroPipeline::reserve_workspace() {
  const KokoroMemoryPlan plan =
      plan_kokoro_memory(config_, model_->network().config(), model_->network().dtype(), device_,
                         team_.size(), memory_available_);
  plan.check();
  execution_.context().workspace->reserve(plan.workspace);
}

std::shared_ptr<KokoroJob> KokoroPipeline::make_job(const SpeechRequest& request, uint64_t client) const {
  auto job = std::make_shared<KokoroJob>();
  job->speaker = choose_speaker(request, config_, *model_);
  job->lines = lines_of(request);
  for (const phonemes::Line& line : job->lines) job->text_bytes += line.text.size();
  job->id = next_id_.fetch_add(1);
  job->client = client;
  job->seed = request.seed ? *request.seed : drawn_seed();
  job->speed = request.speed;
  job->volume = request.volume;
  job->whole = request.delivery == Delivery::whole;
  job->strict = request.strict_phonemes;
  job->trim = request.trim_joins;
  job->options = {.language = job->speaker.language.value_or(phonemes::Language::american),
                  .normalise = request.normalise.value_or(true),
                  .chunks = chunk_rules(config_, *model_)};
  job->chunker.emplace(job->options.chunks);
  return job;
}

void KokoroPipeline::start_clocks(KokoroJob& job, const SpeechRequest& request) const {
  job.submitted_us = now_us();
  job.state = std::make_shared<SpeechState>(sample_rate_hz(), job.seed, wake_,
                                            deadline_of(config_, request, job.submitted_us));
  job.state->update([&](SpeechSummary& summary) { summary.warnings = job.speaker.warnings; });
}

// A voice or a language that is not there is an error all the same.
Speech KokoroPipeline::say_nothing(const SpeechRequest& request, uint64_t client, const QueueEntry& entry,
                                   std::vector<std::string> remarks) {
  KokoroJob job;
  job.speaker = choose_speaker(request, config_, *model_);
  std::ranges::move(remarks, std::back_inserter(job.speaker.warnings));
  job.seed = request.seed ? *request.seed : drawn_seed();
  start_clocks(job, request);
  return speak_silence(ledger_, client, entry, job.state);
}

Speech KokoroPipeline::submit(const SpeechRequest& request, QueueEntry entry) {
  const uint64_t client = std::hash<std::string>()(request.client);
  bool entered = false;
  try {
    std::vector<std::string> remarks = validate_kokoro(request);
    if (has_nothing_to_say(request)) return say_nothing(request, client, entry, std::move(remarks));
    const std::shared_ptr<KokoroJob> job = make_job(request, client);
    std::ranges::move(remarks, std::back_inserter(job->speaker.warnings));
    ledger_.enter(Stage::preparing, client, entry);
    entered = true;
    start_clocks(*job, request);
    Speech speech(job->state);
    loop_->submit(job);
    entered = false;  // from here the loop ends it
    try {
      reader_->read(job);
    } catch (...) {
      job->add(to_error(std::current_exception()));
      wake_->ring();
    }
    return speech;
  } catch (...) {
    if (entered) ledger_.abandon(Stage::preparing, client);
    throw to_error(std::current_exception());
  }
}

void KokoroPipeline::warm_up() {
  std::string letters;
  for (const kokoro::Symbol& symbol : model_->network().config().vocab)
    if (symbol.code_point >= U'a' && symbol.code_point <= U'z') text::append_utf8(letters, symbol.code_point);
  if (letters.empty()) return;
  SpeechRequest request;
  const int length = std::min(kWarmUpPhonemes, model_->most_phonemes());
  while (std::ssize(request.phonemes) < length)
    request.phonemes += letters[request.phonemes.size() % letters.size()];
  request.voice = model_->names().front();
  request.seed = 1;
  request.timeout = std::chrono::hours(1);
  submit(request).read_all();
}

KokoroPipeline::DeviceMemory KokoroPipeline::device_memory() const {
  const std::optional<int64_t> free = ops::free_device_memory(device_);
  if (!free) return {};
  const int64_t total = ops::total_device_memory(device_).value_or(0);
  return {.used = total - *free, .total = total};
}

std::vector<MemoryPart> KokoroPipeline::memory() const {
  std::vector<MemoryPart> parts = {{"model", model_->network().weight_bytes()},
                                   {"workspaces", loop_->workspace_bytes()}};
  if (const int64_t steps = calls_->step_bytes(); steps > 0) parts.push_back({"steps", steps});
  return parts;
}

SelfTest KokoroPipeline::self_test() const { return test_device(device_, device_name_, memory()); }

Phonemized KokoroPipeline::phonemize(const std::string& text, const std::string& language, bool normalise) {
  SpeechRequest request;
  request.text = text;
  request.language = language;
  request.normalise = normalise;
  validate_kokoro(request);
  if (has_nothing_to_say(request))
    fail(ErrorCode::invalid_argument, "text: expected at least one letter or digit, got only punctuation");
  const Speaker speaker = choose_speaker(request, config_, *model_);
  Phonemized result;
  std::vector<char32_t> dropped;
  for (phonemes::Chunk& chunk : front_end_.chunks(text, {.language = *speaker.language,
                                                         .normalise = normalise,
                                                         .chunks = chunk_rules(config_, *model_)})) {
    phonemes::EncodedPhonemes encoded = phonemes::encode_phonemes(chunk.phonemes, model_->symbols());
    for (const char32_t c : encoded.dropped)
      if (std::ranges::find(dropped, c) == dropped.end()) dropped.push_back(c);
    result.chunks.push_back({.phonemes = std::move(chunk.phonemes),
                             .ids = std::move(encoded.ids),
                             .pause_after_s = chunk.pause_after_s});
  }
  if (!dropped.empty())
    result.warnings.push_back(
        concat("phonemes: the model lacks ", phonemes::describe_symbols(dropped), "; they are dropped"));
  return result;
}

std::vector<float> KokoroPipeline::voice_styles(const std::string& voice) const {
  const kokoro::Voice found = model_->voice(voice);
  return {found.pack->values().begin(), found.pack->values().end()};
}

}  // namespace shoal::runtime
