// Joins the sound of consecutive chunks.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "shoal/speech.h"

namespace shoal::runtime {

// Sound that is ready to play.
struct JoinedPiece {
  std::vector<float> samples;
  std::vector<SpokenWord> words;  // heard in them
};

struct SilentEdges {
  int64_t lead = 0, tail = 0;  // samples
};

// Silence: stretches of 5 ms below -45 dB of full scale (root of their mean square).
SilentEdges silent_edges(std::span<const float> samples, int sample_rate_hz);

// Joins the chunks of a text. Each chunk has silence at both ends, which together make too long a pause. At a
// join 50 ms of silence stay at the start of the second chunk; at the end of the first stays a time that
// depends on the mark that ends it (. ? … 360 ms, ! 319, others 278, none 50), divided by the speed. Silence
// is never lengthened. Both sides of a join are faded over 5 ms, so that it never clicks. The ends of the
// whole speech are unchanged: a text of one chunk equals the model's output, sample for sample.
class ChunkJoiner {
 public:
  // trim: false leaves the silences whole; joins are still faded.
  ChunkJoiner(int sample_rate_hz, double speed, bool trim);

  struct Chunk {
    std::vector<float> samples;
    std::vector<SpokenWord> words;  // seconds from the first of these samples
    std::string_view phonemes;      // its last mark says how long a pause follows
    double pause_after_s = 0;       // silence after it that the text asks for
  };
  // The end of the previous sound and this chunk, except its last samples, which depend on whether another
  // chunk follows.
  JoinedPiece add(const Chunk& chunk);
  // Silence where no chunk is: a pause at the beginning of a text or of a line.
  JoinedPiece add_pause(double seconds);
  // The remaining samples, once no chunk follows.
  JoinedPiece end();

  int64_t samples() const { return done_; }  // given so far

 private:
  int64_t samples_of(double seconds) const;
  // The held end of the last chunk with its pause: cut and faded if something follows it at once.
  void give_held(JoinedPiece& piece, bool joined);
  void append(JoinedPiece& piece, std::span<const float> samples);

  const int rate_hz_;
  const double speed_;
  const bool trim_;
  int64_t done_ = 0;
  bool began_ = false;

  struct Held {
    std::vector<float> samples;
    std::vector<SpokenWord> words;  // that reach into them
    double pause_s = 0;
  } held_;
};

}  // namespace shoal::runtime
