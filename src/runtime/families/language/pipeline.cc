#include "runtime/families/language/pipeline.h"

#include <algorithm>

#include "base/log.h"
#include "ops/device_choice.h"
#include "runtime/engine/failure.h"
#include "runtime/engine/request_deadline.h"
#include "runtime/engine/request_text.h"
#include "runtime/engine/silent_speech.h"
#include "runtime/engine/speaker_voices.h"
#include "runtime/engine/useful_threads.h"
#include "runtime/families/language/codec_part.h"
#include "runtime/families/language/language_family.h"
#include "runtime/families/language/memory_plan.h"
#include "runtime/voices/codec_fingerprint.h"

namespace shoal::runtime {
namespace {

constexpr int64_t kMiB = 1 << 20;
// Two threads do more if both loops use them in turn, eight if the codec has three of its own (docs/PERF.md);
// values between were not measured.
constexpr int kFewThreads = 8;
constexpr const char* kWarmUpText = "Hello there.";

CodeStore::Options store_options(const EngineConfig& config, const SpeechModel& model) {
  const dac::Config& codec = model.codec().config();
  const std::string& path = model.codec_path();
  // Codes of random weights are useless later: they are not kept on disk.
  return {.max_clips = config.reference_cache_size,
          .dir = path.empty() ? "" : cache_dir(config.cache_dir),
          .fingerprint = path.empty() ? "random" : codec_fingerprint(path, codec, model.codec().format()),
          .codebooks = static_cast<int>(codec.num_codebooks()),
          .codebook_size = std::max(codec.semantic_codebook_size, codec.codebook_size),
          .max_disk_bytes = config.cache_disk_mb * kMiB};
}

std::vector<std::string> voices_to_warm(const std::string& wanted, const Voices& voices) {
  std::vector<std::string> names;
  if (wanted == "all") {
    for (const VoiceInfo& voice : voices.list()) names.push_back(voice.name);
    return names;
  }
  for (size_t begin = 0; begin <= wanted.size();) {
    const size_t end = std::min(wanted.find(',', begin), wanted.size());
    if (end > begin) names.push_back(wanted.substr(begin, end - begin));
    begin = end + 1;
  }
  return names;
}

}  // namespace

ThreadSplit split_threads(const EngineConfig& config, int available_cpus, bool device_computes) {
  const int all = useful_threads(config.threads, available_cpus);
  ThreadSplit split;
  const int usual = device_computes ? 1 : all < kFewThreads ? 0 : all * 3 / 8;
  split.codec = config.codec_threads >= 0 ? std::min(config.codec_threads, all) : usual;
  split.decode = std::max(1, all - split.codec);
  split.encode = std::max(1, all / 4);
  return split;
}

int64_t plan_kv_pages(const EngineConfig& config, const dual_ar::Config& model, DType dtype,
                      int64_t available_bytes) {
  const int64_t page_bytes = dual_ar::KvCache::bytes_per_token(model, dtype) * config.kv_page_size;
  const int64_t pages_of_one = (model.max_positions + config.kv_page_size - 1) / config.kv_page_size;
  const int64_t most = pages_of_one * config.max_batch_size;
  if (config.kv_memory_mb == 0) {
    const auto share = static_cast<int64_t>(config.kv_memory_fraction * static_cast<double>(available_bytes));
    return std::clamp<int64_t>(share / page_bytes, 1, most);
  }
  const int64_t wanted = config.kv_memory_mb * kMiB;
  if (wanted > available_bytes)
    fail(ErrorCode::resource_exhausted, "kv_memory_mb: ", config.kv_memory_mb,
         " MiB are asked for, but only ", available_bytes / kMiB, " MiB are free beside the model");
  return std::clamp<int64_t>(wanted / page_bytes, 1, most);
}

Pipeline::Pipeline(const EngineConfig& config, const MakeCalls& make_calls)
    : config_(config),
      device_(ops::choose_device(config.device)),
      device_name_(ops::describe(device_)),
      device_memory_bytes_(ops::total_device_memory(device_).value_or(0)),
      split_(split_threads(config, ThreadTeam::available_cpus(), ops::computes_by_itself(device_))),
      decode_team_(split_.decode),
      codec_team_(std::max(1, split_.codec)),
      codec_part_(codec_part(config, split_, ops::multiprocessors(device_))),
      // Decoding goes first: requests that have frames are heard, and generation does not run ahead.
      decode_(device_, decode_team_, {.record = config.cuda_graphs, .part = {codec_part_, ops::Side::rest}}),
      codec_(device_, split_.codec > 0 ? codec_team_ : decode_team_,
             {.priority = ops::StreamPriority::high,
              .record = config.cuda_graphs,
              .part = {codec_part_, ops::Side::first}}),
      clip_work_(device_, split_.encode),
      voices_(config.references_dir, shipped_voices_dir_of(config.model)),
      ledger_(config.max_queue, std::min(config.max_queue, 2 * config.max_batch_size)) {
  check_parts();
  const int64_t available = memory_available(device_);
  model_ = SpeechModel::load({.dir = config.model,
                              .precision = config.precision,
                              .weights = config.weights,
                              .kv_precision = config.kv_precision,
                              .codec_weights = config.codec_weights,
                              .with_encoder = config.with_encoder,
                              .semantic_only = config.semantic_only},
                             decode_.context());
  calls_ = make_calls ? make_calls(*model_) : std::make_unique<ModelCalls>(*model_);
  const dual_ar::DualAr& language_model = model_->language_model();
  codec_states_.emplace(model_->codec(), codec_.context(), config.streams());
  const MemoryPlan plan = plan_memory(config, sizes_of(*model_, device_), split_, available);
  plan.check();
  // CUDA graphs contain addresses: if the workspace grew during traffic, all graphs would be captured again.
  // (The codec's passes seldom reach the size that its plan allows for.)
  if (ops::computes_by_itself(device_)) decode_.context().workspace->reserve(plan.decode_workspace);
  // Clips may come late, while others speak (of one sequence at a time there are no others).
  if (ops::computes_by_itself(device_) && config.max_batch_size > 1)
    clip_work_.run([&](ops::Context& ctx) {
      ctx.workspace->reserve(plan.clip_workspace);
      if (config.with_encoder) model_->codec().reserve_encoding(ctx);
    });
  cache_.emplace(language_model.config(), plan.kv_pages, config.kv_page_size, language_model.formats().kv,
                 device_);
  store_.emplace(store_options(config, *model_));
  codec_loop_.emplace(CodecLoop::Parts{.model = *model_,
                                       .calls = *calls_,
                                       .states = *codec_states_,
                                       .ctx = codec_.context(),
                                       .own_thread = split_.codec > 0,
                                       .ledger = ledger_,
                                       .decode_loop = wake_});
  decode_loop_.emplace(DecodeLoop::Parts{.config = config_,
                                         .model = *model_,
                                         .calls = *calls_,
                                         .cache = *cache_,
                                         .ctx = decode_.context(),
                                         .codec = *codec_loop_,
                                         .ledger = ledger_,
                                         .wake = wake_,
                                         .release_memory = [this] { store_->drop_memory(); }});
  if (!ops::computes_by_itself(device_)) cpu_work_.emplace(device_, 1);
  decoder_.emplace(model_->codec(), cpu_work_ ? *cpu_work_ : clip_work_);
  encoder_.emplace(*model_, *store_, clip_work_);
  preparer_.emplace(*model_, voices_, *encoder_);
}

// What was asked for by number is had or refused; what was chosen here may be missing.
void Pipeline::check_parts() {
  if (codec_part_ == 0 || (decode_.has_part() && codec_.has_part())) return;
  if (config_.codec_multiprocessors > 0)
    fail(ErrorCode::unsupported, "codec_multiprocessors: this GPU or its driver cannot keep ", codec_part_,
         " of its multiprocessors for the codec; try a multiple of 8, a newer driver, or 0");
  log(LogLevel::info,
      "the driver cannot divide the GPU's multiprocessors: decoding and the codec take turns");
}

Pipeline::~Pipeline() {
  exit_.store(true);
  close();
  cancel_all();
  if (warming_.joinable()) warming_.join();
  encoder_.reset();  // ends the requests whose clips wait
  ledger_.wait_until_empty(0);
}

Speech Pipeline::submit(const SpeechRequest& request, QueueEntry entry) {
  const uint64_t client = std::hash<std::string>()(request.client);
  bool entered = false;
  try {
    std::vector<std::string> remarks = validate(request);
    check_speakers(request, traits());
    for (const auto remark_on : {remark_on_language, remark_on_chunk_length})
      if (auto remark = remark_on(request, *model_)) remarks.push_back(*std::move(remark));
    const uint64_t seed = request.seed ? *request.seed : drawn_seed();
    if (has_nothing_to_say(request)) {
      if (!request.voice.empty()) voices_.clips(request.voice);  // an unknown one is an error all the same
      for (const SpeakerVoice& speaker : request.voices)
        if (!speaker.voice.empty()) voices_.clips(speaker.voice);
      auto state = std::make_shared<SpeechState>(sample_rate_hz(), seed, wake_);
      state->update([&](SpeechSummary& summary) { summary.warnings = std::move(remarks); });
      return speak_silence(ledger_, client, entry, std::move(state));
    }
    ledger_.enter(Stage::preparing, client, entry);
    entered = true;
    const auto speech = std::make_shared<PreparingSpeech>();
    speech->submitted_us = now_us();
    speech->state = std::make_shared<SpeechState>(sample_rate_hz(), seed, wake_,
                                                  deadline_of(config_, request, speech->submitted_us));
    speech->state->update([&](SpeechSummary& summary) { summary.warnings = std::move(remarks); });
    speech->client = client;
    auto job = preparer_->prepare(request, speech->state, seed,
                                  [this, speech](std::shared_ptr<SpeechJob> made, const auto& error) {
                                    prepared(*speech, std::move(made), error);
                                  });
    if (job)
      queue(std::move(job), *speech);
    else
      watch(speech);
    return Speech(speech->state);
  } catch (...) {
    if (entered) ledger_.abandon(Stage::preparing, client);
    throw to_error(std::current_exception());
  }
}

void Pipeline::watch(const std::shared_ptr<PreparingSpeech>& speech) {
  try {
    decode_loop_->watch(speech);
  } catch (...) {
    if (speech->claim()) throw;  // otherwise it has been prepared already
  }
}

void Pipeline::prepared(PreparingSpeech& speech, std::shared_ptr<SpeechJob> job,
                        const std::exception_ptr& error) {
  if (!speech.claim()) return;
  try {
    if (error) std::rethrow_exception(error);
    queue(std::move(job), speech);
  } catch (...) {
    ledger_.leave(*speech.state, Stage::preparing, speech.client, to_error(std::current_exception()));
  }
}

void Pipeline::queue(std::shared_ptr<SpeechJob> job, const PreparingSpeech& prepared) {
  const dual_ar::Config& config = model_->language_model().config();
  const int64_t prompt = job->first_prompt.columns();
  const int64_t room = config.max_positions - prompt;
  const int64_t frames = job->plan.max_new_tokens == 0 ? room : std::min(room, job->plan.max_new_tokens);
  check_fits(prompt + frames, prompt, cache_->pages(), cache_->page_size());
  job->id = next_id_.fetch_add(1);
  job->client = prepared.client;
  job->submitted_us = prepared.submitted_us;
  job->arrival_us = now_us();
  const double prepared_s = static_cast<double>(job->arrival_us - job->submitted_us) * 1e-6;
  job->state->update([&](SpeechSummary& summary) { summary.prepared_s = prepared_s; });
  ledger_.move(Stage::preparing, Stage::waiting, prepared.client);
  try {
    decode_loop_->submit(std::move(job));
  } catch (...) {
    ledger_.move(Stage::waiting, Stage::preparing, prepared.client);
    throw;
  }
}

void Pipeline::warm_up() {
  SpeechRequest request;
  request.text = kWarmUpText;
  request.seed = 1;
  request.max_new_tokens = 16;
  request.quirks.keep_last_frame_without_end = true;
  request.timeout = std::chrono::hours(1);
  submit(request).read_all();
}

void Pipeline::warm_voices() {
  if (config_.warm_voices == "none") return;
  const auto warm = [this] {
    try {
      for (const std::string& name : voices_to_warm(config_.warm_voices, voices_)) {
        if (exit_.load()) return;
        warm_voice(name);
      }
    } catch (const std::exception& error) {
      log(LogLevel::warning, "warm_voices: ", error.what());
    }
  };
  try {
    warming_ = std::thread(warm);
  } catch (const std::exception& error) {
    log(LogLevel::warning, "warm_voices: ", error.what());
  }
}

// One frame of anything: its prompt begins with the voice.
void Pipeline::warm_voice(const std::string& name) {
  SpeechRequest request;
  request.text = "a";
  request.voice = name;
  request.max_new_tokens = 1;
  request.quirks.keep_last_frame_without_end = true;
  request.delivery = Delivery::whole;
  request.timeout = std::chrono::hours(1);
  try {
    submit(request, {.wait = true}).read_all();
    log(LogLevel::info, "voice \"", name, "\" is warm");
  } catch (const Error& error) {
    log(LogLevel::warning, "voice \"", name, "\" could not be warmed: ", error.message());
  }
}

ModelTraits Pipeline::traits() const {
  const bool s1 = model_->language_model().config().family == dual_ar::Family::s1;
  return traits_of_family(s1 ? "s1" : "s2");
}

EncodedClip Pipeline::encode(const std::string& audio) {
  const auto codes = preparer_->encode(audio);
  return {.codes = {codes->values().begin(), codes->values().end()},
          .frames = codes->frames(),
          .codebooks = codes->codebooks()};
}

CodecShape Pipeline::codec_shape() const {
  const dac::Config& codec = model_->codec().config();
  return {.codebooks = static_cast<int>(codec.num_codebooks()),
          .semantic_entries = static_cast<int>(codec.semantic_codebook_size),
          .residual_entries = static_cast<int>(codec.codebook_size),
          .samples_per_frame = static_cast<int>(codec.samples_per_frame())};
}

std::vector<float> Pipeline::decode(const std::vector<int32_t>& codes) { return decoder_->decode(codes); }

Pipeline::DeviceMemory Pipeline::device_memory() const {
  const std::optional<int64_t> free = ops::free_device_memory(device_);
  if (!free) return {};
  return {.used = device_memory_bytes_ - *free, .total = device_memory_bytes_};
}

SelfTest Pipeline::self_test() const { return test_device(device_, device_name_, memory()); }

std::vector<MemoryPart> Pipeline::memory() const {
  return {{"language model", model_->language_model().memory().total()},
          {"codec", model_->codec().memory().total()},
          {"KV pages", cache_->bytes()},
          {"codec streams", codec_states_->bytes()},
          {"workspaces", decode_loop_->workspace_bytes() + codec_loop_->workspace_bytes() +
                             clip_work_.workspace_bytes() + (cpu_work_ ? cpu_work_->workspace_bytes() : 0)},
          {"voices", store_->bytes()}};
}

void Pipeline::check_idle() const {
  decode_loop_->check_pages();
  CHECK(codec_states_->streams_open() == 0, codec_states_->streams_open(), " codec streams are open");
}

Statistics Pipeline::statistics() const {
  Statistics statistics = ledger_.statistics();
  statistics.voices = store_->statistics();
  return statistics;
}

}  // namespace shoal::runtime
