#include "runtime/families/kokoro/text_reader.h"

#include <algorithm>

#include "base/error.h"
#include "base/trace.h"
#include "runtime/engine/failure.h"

namespace shoal::runtime {

EncodedChunk encode_chunk(phonemes::Chunk chunk, const KokoroModel& model, const kokoro::VoicePack& voice) {
  EncodedChunk encoded;
  const int length = phonemes::count_code_points(chunk.phonemes);
  encoded.dropped = phonemes::drop_unknown(chunk.tokens, model.symbols());
  if (!model.symbols().contains(U' '))
    for (phonemes::Token& token : chunk.tokens) token.space_after = false;
  const std::string known = phonemes::phonemes_of(chunk.tokens);
  std::vector<int32_t> ids = phonemes::encode_phonemes(known, model.symbols()).ids;
  const bool has_sound = std::ranges::any_of(chunk.tokens, [](const phonemes::Token& token) {
    return !token.phonemes.empty() && !phonemes::is_mark(token.phonemes);
  });
  if (has_sound) {
    ids.insert(ids.begin(), 0);
    ids.push_back(0);
    encoded.chunk.ids = std::move(ids);
    encoded.chunk.style = voice.row(std::min<int64_t>(length, kokoro::VoicePack::kRows));
  }
  encoded.chunk.chunk = std::move(chunk);
  return encoded;
}

TextReader::TextReader(phonemes::FrontEnd& front_end, const KokoroModel& model, int threads,
                       std::function<void()> rung)
    : front_end_(front_end), model_(model), rung_(std::move(rung)) {
  try {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
  } catch (...) {
    stop();
    throw;
  }
}

TextReader::~TextReader() { stop(); }

void TextReader::stop() {
  {
    const std::lock_guard lock(mutex_);
    exit_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void TextReader::read(std::shared_ptr<KokoroJob> job) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(job));
  }
  changed_.notify_one();
}

void TextReader::run() {
  while (true) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return exit_ || !waiting_.empty(); });
    if (exit_) return;
    const std::shared_ptr<KokoroJob> job = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    if (job->ended.load(std::memory_order_relaxed) || job->state->cancelled()) continue;
    try {
      read_line(*job);
      if (job->next_line < job->lines.size()) read(job);
    } catch (...) {
      job->add(to_error(std::current_exception()));
    }
    rung_();
  }
}

void TextReader::read_line(KokoroJob& job) {
  const TraceSpan span("read a line", {{"request", job.id}});
  const phonemes::Line& line = job.lines[job.next_line++];
  std::vector<phonemes::Token> tokens;
  if (!line.text.empty())
    tokens = job.speaker.language ? front_end_.tokens(line.text, job.options)
                                  : phonemes::split_phonemes(line.text);

  std::vector<ReadChunk> read;
  std::vector<char32_t> dropped;
  for (phonemes::Chunk& chunk : job.chunker->cut(std::move(tokens), line.pause_after_s)) {
    EncodedChunk encoded = encode_chunk(std::move(chunk), model_, *job.speaker.voice.pack);
    for (const char32_t c : encoded.dropped)
      if (std::ranges::find(dropped, c) == dropped.end()) dropped.push_back(c);
    read.push_back(std::move(encoded.chunk));
  }
  if (job.strict) phonemes::require_known(dropped);
  if (!dropped.empty()) {
    std::string warning =
        concat("phonemes: the model lacks ", phonemes::describe_symbols(dropped), "; they were dropped");
    job.state->update([&](SpeechSummary& summary) {
      if (std::ranges::find(summary.warnings, warning) == summary.warnings.end())
        summary.warnings.push_back(std::move(warning));
    });
  }
  job.bytes_read += line.text.size();
  job.add(std::move(read), job.bytes_read, job.next_line == job.lines.size());
}

}  // namespace shoal::runtime
