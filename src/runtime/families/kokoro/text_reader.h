// Converts texts to chunks of phonemes on its own threads, because espeak-ng may be slow.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/families/kokoro/kokoro_job.h"

namespace shoal::runtime {

class TextReader {
 public:
  // rung: called after every addition to a job, from a reader's thread.
  TextReader(phonemes::FrontEnd& front_end, const KokoroModel& model, int threads,
             std::function<void()> rung);
  // Jobs that wait to be read are dropped: they must have ended.
  ~TextReader();
  TextReader(const TextReader&) = delete;
  TextReader& operator=(const TextReader&) = delete;

  // Jobs take turns, a line each. Throws std::bad_alloc, and it is not read.
  void read(std::shared_ptr<KokoroJob> job);

 private:
  void run();
  void stop();
  void read_line(KokoroJob& job);

  phonemes::FrontEnd& front_end_;
  const KokoroModel& model_;
  const std::function<void()> rung_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<KokoroJob>> waiting_;
  bool exit_ = false;
  std::vector<std::thread> threads_;  // last: run on all of the above
};

// The ids of a chunk, between pads, and its style. Phonemes unknown to the model are removed from the tokens
// and returned, each once; the style depends on the number of phonemes before the removal (as in the official
// pipeline).
struct EncodedChunk {
  ReadChunk chunk;
  std::vector<char32_t> dropped;
};
EncodedChunk encode_chunk(phonemes::Chunk chunk, const KokoroModel& model, const kokoro::VoicePack& voice);

}  // namespace shoal::runtime
