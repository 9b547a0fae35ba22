// One request on its way through a Kokoro engine.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/engine/speech_state.h"
#include "runtime/families/kokoro/kokoro_request.h"

namespace shoal::runtime {

// A chunk of text that the model can speak.
struct ReadChunk {
  phonemes::Chunk chunk;         // its tokens hold only phonemes that have ids
  std::vector<int32_t> ids;      // with the pads; empty: only a pause
  std::span<const float> style;  // of the job's voice
};

// Created by the submitting thread, then read line by line by a TextReader, whose chunks the BatchLoop speaks
// and delivers. Only the loop ends it.
struct KokoroJob {
  // Set before it is queued.
  uint64_t id = 0, client = 0, seed = 0;
  int64_t submitted_us = 0;
  double speed = 1;
  float volume = 1;
  bool whole = false;  // Delivery::whole
  bool strict = false, trim = true;
  Speaker speaker;
  phonemes::TextOptions options;
  std::vector<phonemes::Line> lines;
  size_t text_bytes = 0;
  std::shared_ptr<SpeechState> state;

  // The reader's own.
  std::optional<phonemes::Chunker> chunker;
  size_t next_line = 0, bytes_read = 0;

  std::atomic<bool> ended{false};  // set by the loop: the text need not be read further

  // Reader to loop.
  struct Reading {
    std::vector<ReadChunk> chunks;
    size_t bytes = 0;  // of the text, read in all
    bool complete = false;
    std::optional<Error> error;  // then it is complete
  };
  void add(std::vector<ReadChunk> chunks, size_t bytes, bool complete) {
    const std::lock_guard lock(mutex_);
    for (ReadChunk& chunk : chunks) reading_.chunks.push_back(std::move(chunk));
    reading_.bytes = bytes;
    reading_.complete = complete;
  }
  void add(Error error) {
    const std::lock_guard lock(mutex_);
    reading_.error = std::move(error);
    reading_.complete = true;
  }
  // The samples added since.
  Reading take() {
    const std::lock_guard lock(mutex_);
    Reading taken = std::exchange(reading_, {});
    reading_.bytes = taken.bytes;
    reading_.complete = taken.complete;
    return taken;
  }

 private:
  std::mutex mutex_;
  Reading reading_;
};

}  // namespace shoal::runtime
