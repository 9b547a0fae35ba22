// Plans what the codec decodes next: pure functions, and one small state with the clock given.
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
  bool ended = false;          // no more frames will come: the waiting ones are due
  bool whole = false;          // not streamed: no listener waits for it
  bool started = false;        // some sound has left
  int64_t lead_us = 0;         // sound that its listener has yet to hear; negative: has run dry
  bool ran_dry = false;        // its listener has had to wait at least once
  double speed = 1;            // a frame is heard for its length divided by this
};

struct CodecLimits {
  int64_t frame_us = 0;             // length of a frame
  int64_t max_frames_per_pass = 1;  // of all streams together: bounds how long a starving stream waits
  // Fewer frames are not worth a pass if all of its streams ran dry before: frames one by one are made too
  // slowly for them, for a pass reads all weights of the codec. One longer pause takes the place of many.
  int64_t worth_a_pass = 1;
  // Only streams whose listeners have less than kLittleLeadUs of sound, or none yet; no whole files.
  bool only_urgent = false;
};
constexpr int64_t kLittleLeadUs = 100'000;

struct CodecPiece {
  JobId id = 0;
  int64_t frames = 0;
};

// How many frames a stream waits for before a piece is worth decoding: 1, 2, 4, 8 or 16, the largest during
// whose making (in real time) and for as long again the listener has sound, 1 before the first sound; 16 for
// a whole file.
int64_t wanted_frames(const CodecJob& job, int64_t frame_us);

// The pieces of one pass: first due streams (ended, or with as many waiting frames as wanted), the least lead
// first, ties by id; then due whole files, the most waiting frames first. Each piece has all waiting frames,
// cut to what is left of max_frames_per_pass. So that streams never starve whole files, an eighth of a pass
// of two frames or more (at least one frame) is reserved for due whole files. No pieces, although something
// is due, while it is not worth a pass.
std::vector<CodecPiece> plan_codec(std::span<const CodecJob> jobs, const CodecLimits& limits);

// Decides which passes are of urgent streams alone: short ones, so that what somebody waits for comes sooner
// (docs/perf/notebook-engine.md). Beside a step with long prompts (puts_passes_off): every pass, except one
// in kMostHeldUs, for where all steps have prompts, the sound must still be made. Otherwise, among at most
// kMostJobs jobs: every second pass while a first sound is due. With more jobs the others would lose too
// much.
class UrgentPasses {
 public:
  static constexpr int64_t kMostHeldUs = 40'000;
  static constexpr size_t kMostJobs = 64;

  // Once before each pass: whether it is one of them. held: by the step that runs.
  bool next(bool held, std::span<const CodecJob> jobs, int64_t now_us);
  // When the others must be looked at again; 0: no step holds them.
  int64_t ends_us() const { return held_since_us_ == 0 ? 0 : held_since_us_ + kMostHeldUs; }

 private:
  bool holds(int64_t now_us);

  int64_t held_since_us_ = 0;  // 0: not held
  bool was_urgent_ = false;    // the pass before was one of them
};

}  // namespace shoal::runtime
