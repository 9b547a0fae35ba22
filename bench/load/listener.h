// The sound of one answer as it arrives, in the record of its request. Knows neither HTTP nor sockets.
#pragma once

#include <cstdint>
#include <string_view>

#include "bench/load/request_record.h"
#include "bench/load/sound_reader.h"

namespace shoal::load {

struct Hearing {
  Container container = Container::wav;
  int pcm_rate_hz = 0;       // of PCM whose answer does not say it; 0: then it is a failure
  double silence = 0.003;    // share of full scale; samples below are silent
  double leave_after_s = 0;  // leaves once so much sound has arrived; 0: hears it to the end
  int64_t items = 0;         // of a batch, whose answer is a line for each; 0: the answer is sound
  bool keep = false;         // the samples go into the record
};

class Listener {
 public:
  // `record` outlives it.
  Listener(const Hearing& hearing, RequestRecord& record);

  // Before the sound: what the answer says of its sample rate; 0: nothing.
  void begin(int stated_rate_hz);
  // Sound that arrived at `at_us`, after begin(). Notes what is wrong with it, and when it leaves.
  void hear(std::string_view bytes, int64_t at_us);
  // The protocol has ended in order: notes what the sound lacks.
  void finish_sound();
  // The first failure counts.
  void note(Failure failure);
  // Nothing more happens to the record.
  void end(int64_t at_us);

  bool is_over() const { return ended_ || record_.failure || record_.outcome == Outcome::left; }
  bool has_ended() const { return ended_; }
  double heard_s() const;  // seconds of sound so far

 private:
  const Hearing hearing_;
  RequestRecord& record_;
  SoundReader sound_;
  bool ended_ = false;
};

}  // namespace shoal::load
