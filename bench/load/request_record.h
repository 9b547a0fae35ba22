// One request as it was observed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/load/failure.h"
#include "bench/load/playback.h"
#include "bench/load/sound_reader.h"

namespace shoal::load {

enum class Outcome {
  completed,
  left,  // on purpose, after part of the sound
  failed,
  interrupted
};

// Times in microseconds of now_us(); 0: it did not happen.
struct RequestRecord {
  uint64_t index = 0;  // of the run: chooses text, voice and seed
  std::string voice;
  int64_t characters = 0;

  int64_t due_us = 0;         // when it should have begun; latencies count from here
  int64_t begun_us = 0;       // when it did; later than due if the load program was late
  int64_t connected_us = 0;   // 0: on a connection of an earlier request
  int64_t sent_us = 0;        // the kernel has taken the request
  int64_t first_byte_us = 0;  // of the answer
  int64_t end_us = 0;         // the last byte, or the failure

  int status = 0;
  std::string content_type;
  int64_t body_bytes = 0;
  SoundFormat format;
  std::vector<Piece> pieces;
  int64_t first_audible_frame = -1;
  uint64_t checksum = 0;
  std::string samples;  // as they came, without headers; only if they are kept

  bool slow = false;  // read slowly on purpose: its times are the reader's own
  Outcome outcome = Outcome::completed;
  std::optional<Failure> failure;
};

}  // namespace shoal::load
