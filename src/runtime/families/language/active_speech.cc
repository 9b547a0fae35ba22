#include "runtime/families/language/active_speech.h"

#include <algorithm>

namespace shoal::runtime {
namespace {

// Frames a byte of text takes at normal speed; only progress depends on it.
constexpr double kFramesPerByte = 1.4;

// Copies the frames that have become certain since the last call.
void append_speech(const dual_ar::Utterance& utterance, VoiceReference& spoken) {
  const auto width = static_cast<int64_t>(utterance.last_frame().size());
  for (; spoken.frames < utterance.speech_frames(); ++spoken.frames) {
    const auto frame =
        utterance.frames().subspan(static_cast<size_t>(spoken.frames * width), static_cast<size_t>(width));
    spoken.codes.insert(spoken.codes.end(), frame.begin() + 1, frame.end());
  }
}

}  // namespace

void check_fits(int64_t columns, int64_t prompt_columns, int64_t pages, int64_t page_size) {
  const int64_t needed = (columns + page_size - 1) / page_size;
  if (needed <= pages) return;
  fail(ErrorCode::too_large, "text: its prompt of ", prompt_columns, " columns and up to ",
       columns - prompt_columns, " frames need ", needed, " KV pages of ", page_size,
       " columns, but there are ", pages, "; lower max_new_tokens or raise kv_memory_mb");
}

ActiveSpeech::ActiveSpeech(std::shared_ptr<SpeechJob> job, const SpeechModel& model)
    : job_(std::move(job)),
      model_(model),
      voice_(voice_of_prompt(job_->plan, {})),
      frame_(static_cast<size_t>(model.language_model().config().columns())) {}

void ActiveSpeech::begin_utterance(const KvPages& pages) {
  const dual_ar::Config& config = model_.language_model().config();
  const SpeechPlan& plan = job_->plan;
  const auto before = std::span<const VoiceReference>(job_->spoken).first(utterance_);
  const std::string& text = plan.utterances[utterance_];
  generation_.reset();
  const int64_t room = pages.options().pages * pages.options().page_size - plan.max_new_tokens;
  prompt_ = utterance_ == 0 ? std::move(job_->first_prompt) : build_prompt(plan, model_, before, text, room);
  voice_ = voice_of_prompt(plan, before);
  dual_ar::Sampling sampling = plan.sampling;
  sampling.seed = seed_of_utterance(sampling.seed, utterance_);
  generation_.emplace(config, sampling, prompt_.columns(), plan.max_new_tokens);
  const int64_t most_columns = prompt_.columns() + generation_->max_frames();
  check_fits(most_columns, prompt_.columns(), pages.options().pages, pages.options().page_size);

  pages_.release();
  VoiceReference& spoken = job_->spoken[utterance_];
  spoken.text = text;
  spoken.codes.reserve(static_cast<size_t>(generation_->max_frames() * config.num_codebooks));
  columns_done_ = 0;
  started_ = false;
  job_->state->update([&](SpeechSummary& summary) { summary.prompt_columns += prompt_.columns(); });
}

void ActiveSpeech::attach_prefix(KvPages& pages, FunctionRef<void(PageCopy)> copy) {
  SequencePages found(pages, voice_, prompt_.values);
  found.reserve_table(prompt_columns() + generation_->max_frames());
  if (const auto tail = found.tail_copy()) copy(*tail);
  pages_ = std::move(found);
  columns_done_ = pages_.cached_columns();
  started_ = true;
  job_->state->update([&](SpeechSummary& summary) { summary.cached_columns += columns_done_; });
}

void ActiveSpeech::preempt() {
  pages_.release();
  columns_done_ = 0;
  started_ = false;
  job_->state->update([](SpeechSummary& summary) { ++summary.preemptions; });
}

bool ActiveSpeech::rows(const StepRows& planned, SequenceRows& rows) {
  if (!pages_.hold(columns_done_ + planned.columns)) return false;
  rows = {.pages = pages_.table(),
          .prompt = prompt_.values,
          .frames = generation_->frames(),
          .first = columns_done_,
          .count = planned.columns,
          .wants_frame = planned.frame};
  if (planned.frame) {
    rows.request = generation_->next_request();
    rows.frame = frame_;
  }
  return true;
}

bool ActiveSpeech::accept(const SequenceRows& rows) {
  columns_done_ += rows.count;
  if (rows.count > 1 || rows.first < prompt_columns()) {
    job_->state->update([&](SpeechSummary& summary) { summary.computed_columns += rows.count; });
    // Sharing is optional: without memory for the index no other sequence finds these pages.
    try {
      pages_.publish(prompt_.values, std::min(columns_done_, prompt_columns()));
    } catch (const std::bad_alloc&) {
    }
  }
  if (!rows.wants_frame) return false;
  const bool finished = generation_->accept(frame_);
  spoke_frame();
  if (!finished) return false;
  pages_.release();
  frames_before_ += generation_->frame_count();
  text_bytes_before_ += static_cast<int64_t>(job_->plan.utterances[utterance_].size());
  const bool cut = generation_->finish_reason() == dual_ar::FinishReason::length;
  job_->state->update([&](SpeechSummary& summary) {
    ++summary.utterances;
    summary.frames += job_->spoken[utterance_].frames;
    if (cut) summary.cut_at_frames = generation_->max_frames();
  });
  cut_ |= cut;
  job_->closed_utterances.store(static_cast<int64_t>(utterance_) + 1, std::memory_order_release);
  return true;
}

void ActiveSpeech::spoke_frame() {
  if (first_frame_us_ == 0) first_frame_us_ = now_us();
  VoiceReference& spoken = job_->spoken[utterance_];
  append_speech(*generation_, spoken);
  job_->published[utterance_].store(spoken.frames, std::memory_order_release);
  const double bytes = static_cast<double>(job_->plan.utterances[utterance_].size());
  const double part =
      std::min(1.0, static_cast<double>(generation_->frame_count()) / std::max(1.0, bytes * kFramesPerByte));
  job_->state->set_progress((static_cast<double>(text_bytes_before_) + part * bytes) /
                                std::max(1.0, static_cast<double>(job_->text_bytes)),
                            frames_before_ + generation_->frame_count());
}

bool ActiveSpeech::silent() const {
  return std::all_of(job_->spoken.begin(), job_->spoken.end(),
                     [](const VoiceReference& utterance) { return utterance.frames == 0; });
}

void ActiveSpeech::end(std::optional<Error> error) {
  pages_.release();
  generation_.reset();
  ended_ = true;
  job_->end_generation(std::move(error));
}

ActiveJob ActiveSpeech::describe(int64_t now, int64_t frame_us, int64_t prefetch_samples) const {
  ActiveJob job{.id = job_->id,
                .client = job_->client,
                .voice = voice_,
                .arrival_us = job_->arrival_us,
                .deadline_us = job_->state->deadline_us(now),
                .finishing = ended_};
  if (ended_) return job;
  const int64_t frames = generation_->frame_count();
  job.columns = prompt_columns() + frames;
  job.columns_done = columns_done_;
  job.pages_held = static_cast<int64_t>(pages_.table().size());
  job.frames = frames;
  job.pages_shared = pages_.shared_pages();
  job.started = started_;
  const double heard_us = static_cast<double>((frames_before_ + frames) * frame_us) / job_->speed;
  job.lead_us = first_frame_us_ == 0 ? 0 : static_cast<int64_t>(heard_us) - (now - first_frame_us_);
  job.cancelled = job_->state->cancelled();
  job.paused = !job_->whole && job_->state->pause_beyond(prefetch_samples);
  return job;
}

}  // namespace shoal::runtime
