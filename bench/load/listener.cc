#include "bench/load/listener.h"

#include <utility>

#include "base/error.h"

namespace shoal::load {
namespace {

constexpr int64_t kMostSoundSeconds = 3600;  // nobody asked for more
constexpr size_t kMostPieces = 1 << 20;

}  // namespace

Listener::Listener(const Hearing& hearing, RequestRecord& record)
    : hearing_(hearing), record_(record), sound_(hearing.container, 0, hearing.silence) {}

void Listener::begin(int stated_rate_hz) {
  sound_ = SoundReader(hearing_.container, stated_rate_hz, hearing_.silence, hearing_.pcm_rate_hz);
  if (hearing_.keep) sound_.keep_samples(record_.samples);
}

void Listener::hear(std::string_view bytes, int64_t at_us) {
  if (is_over()) return;
  const int64_t before = sound_.frames();
  if (auto failure = sound_.take(bytes)) return note(std::move(*failure));
  record_.format = sound_.format();
  record_.first_audible_frame = sound_.first_audible_frame();
  record_.checksum = sound_.checksum();
  const int64_t frames = sound_.frames() - before;
  if (frames == 0) return;
  // Sound of one moment is one piece.
  if (!record_.pieces.empty() && record_.pieces.back().at_us == at_us)
    record_.pieces.back().frames += frames;
  else
    record_.pieces.push_back({at_us, frames});
  const int64_t rate_hz = record_.format.rate_hz;
  if (sound_.frames() > kMostSoundSeconds * rate_hz || record_.pieces.size() > kMostPieces)
    return note({"endless", concat("more than ", sound_.frames() / rate_hz, " s of sound, and no end")});
  if (hearing_.leave_after_s > 0 &&
      static_cast<double>(sound_.frames()) >= hearing_.leave_after_s * static_cast<double>(rate_hz))
    record_.outcome = Outcome::left;
}

void Listener::finish_sound() {
  if (auto failure = sound_.end()) note(std::move(*failure));
}

void Listener::note(Failure failure) {
  if (record_.failure) return;
  record_.failure = std::move(failure);
  record_.outcome = Outcome::failed;
}

void Listener::end(int64_t at_us) {
  if (ended_) return;
  ended_ = true;
  record_.end_us = at_us;
}

double Listener::heard_s() const {
  const int rate_hz = sound_.format().rate_hz;
  return rate_hz > 0 ? static_cast<double>(sound_.frames()) / rate_hz : 0;
}

}  // namespace shoal::load
