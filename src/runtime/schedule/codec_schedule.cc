#include "runtime/schedule/codec_schedule.h"

#include <algorithm>
#include <tuple>

#include "base/error.h"

namespace shoal::runtime {
namespace {

constexpr int64_t kLargestPiece = 16;
constexpr int64_t kShareOfWholeFiles = 8;  // one part in as many of a pass

bool is_urgent(const CodecJob& job) { return !job.whole && (!job.started || job.lead_us < kLittleLeadUs); }

bool is_due(const CodecJob& job, const CodecLimits& limits) {
  if (job.waiting_frames <= 0 || (limits.only_urgent && !is_urgent(job))) return false;
  return job.ended || job.waiting_frames >= wanted_frames(job, limits.frame_us);
}

// Frames of a pass that streams leave to whole files.
int64_t kept_for(std::span<const CodecJob* const> whole_files, int64_t max_frames) {
  if (whole_files.empty() || max_frames < 2) return 0;
  const int64_t share = std::max<int64_t>(1, max_frames / kShareOfWholeFiles);
  int64_t waiting = 0;
  for (const CodecJob* job : whole_files)
    waiting = std::min(share, waiting + std::min(share, job->waiting_frames));
  return waiting;
}

// Adds pieces until `frames` are used up; returns the rest.
int64_t give_pieces(std::span<const CodecJob* const> jobs, int64_t frames, std::vector<CodecPiece>& pieces) {
  for (const CodecJob* job : jobs) {
    if (frames == 0) break;
    pieces.push_back({.id = job->id, .frames = std::min(frames, job->waiting_frames)});
    frames -= pieces.back().frames;
  }
  return frames;
}

// Streams that ran dry before and go on, without enough for a pass.
bool can_wait(std::span<const CodecJob* const> streams, int64_t worth_a_pass) {
  int64_t waiting = 0;
  for (const CodecJob* job : streams) {
    if (!job->ran_dry || job->ended) return false;
    waiting += job->waiting_frames;
  }
  return waiting < worth_a_pass;
}

bool waits_for_first_sound(const CodecJob& job) {
  return !job.whole && !job.started && job.waiting_frames > 0;
}

}  // namespace

int64_t wanted_frames(const CodecJob& job, int64_t frame_us) {
  CHECK(frame_us >= 1, "frame_us is ", frame_us, ", expected at least 1");
  if (job.whole) return kLargestPiece;
  if (!job.started) return 1;
  const auto heard_us = static_cast<int64_t>(static_cast<double>(frame_us) / job.speed);
  const int64_t lead_frames = job.lead_us / std::max<int64_t>(1, heard_us);
  int64_t frames = kLargestPiece;
  while (frames > 1 && 2 * frames > lead_frames) frames /= 2;
  return frames;
}

std::vector<CodecPiece> plan_codec(std::span<const CodecJob> jobs, const CodecLimits& limits) {
  CHECK(limits.max_frames_per_pass >= 1, "max_frames_per_pass is ", limits.max_frames_per_pass,
        ", expected at least 1");
  std::vector<const CodecJob*> streams, whole_files;
  for (const CodecJob& job : jobs) {
    if (is_due(job, limits)) (job.whole ? whole_files : streams).push_back(&job);
  }
  if (whole_files.empty() && can_wait(streams, limits.worth_a_pass)) return {};
  std::ranges::sort(streams, {}, [](const CodecJob* job) { return std::tuple(job->lead_us, job->id); });
  std::ranges::sort(whole_files, {},
                    [](const CodecJob* job) { return std::tuple(-job->waiting_frames, job->id); });

  std::vector<CodecPiece> pieces;
  const int64_t kept = kept_for(whole_files, limits.max_frames_per_pass);
  const int64_t left = give_pieces(streams, limits.max_frames_per_pass - kept, pieces);
  give_pieces(whole_files, left + kept, pieces);
  return pieces;
}

bool UrgentPasses::next(bool held, std::span<const CodecJob> jobs, int64_t now_us) {
  if (held) {
    was_urgent_ = holds(now_us);
    return was_urgent_;
  }
  held_since_us_ = 0;
  was_urgent_ = !was_urgent_ && jobs.size() <= kMostJobs && std::ranges::any_of(jobs, waits_for_first_sound);
  return was_urgent_;
}

bool UrgentPasses::holds(int64_t now_us) {
  if (held_since_us_ == 0) held_since_us_ = now_us;
  if (now_us - held_since_us_ < kMostHeldUs) return true;
  held_since_us_ = now_us;  // who is not due yet is looked at again
  return false;
}

}  // namespace shoal::runtime
