// What the codec decodes next (design 8). Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/schedule/schedule.h"

namespace shoal::runtime {

// One stream of sound.
struct CodecJob {
  JobId id = 0;
  int64_t waiting_frames = 0;  // generated, not decoded
  bool ended = false;          // no more frames will come to those that wait: they are due
  bool whole = false;          // nobody listens while it is made
  bool started = false;        // some sound has left
  int64_t lead_us = 0;         // sound that its listener has yet to hear; negative: has run dry
};

struct CodecLimits {
  int64_t frame_us = 0;             // length of a frame
  int64_t max_frames_per_pass = 1;  // of all streams together: bounds how long a starving stream waits
};

struct CodecPiece {
  JobId id = 0;
  int64_t frames = 0;
};

// How many frames a stream waits for before a piece is worth decoding: 1, 2, 4, 8 or 16, the largest that
// leaves the listener at least as much sound again; 16 for a whole file.
int64_t wanted_frames(const CodecJob& job, int64_t frame_us);

// The pieces of one pass: streams that are due (ended, or as many frames wait as are wanted), the least lead
// first (whole files last), ties by id, as many frames as wait but not over max_frames_per_pass in all; the
// first piece is cut to it, later ones that do not fit wait.
std::vector<CodecPiece> plan_codec(std::span<const CodecJob> jobs, const CodecLimits& limits);

}  // namespace shoal::runtime
