// The sound of one chunk behind that of another.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "shoal/speech.h"

namespace shoal::runtime {

// What can be heard next.
struct JoinedPiece {
  std::vector<float> samples;
  std::vector<SpokenWord> words;  // heard in them
};

struct SilentEdges {
  int64_t lead = 0, tail = 0;  // samples
};

// Silence: stretches of 5 ms below -45 dB of full scale (root of their mean square).
SilentEdges silent_edges(std::span<const float> samples, int sample_rate_hz);

// Puts the chunks of a text one behind the other. Each is made with silence at both ends, two of which are
// too much of a pause: at a join 50 ms stay of the one in front of a chunk, and of the one behind it what the
// mark that ends it asks for (. ? … 360 ms, ! 319, others 278, none 50), divided by the speed; nothing is
// ever made longer. Both sides of a join are faded over 5 ms, so that it never clicks. The ends of the whole
// speech stay as the model makes them: a text of one chunk is what the model gives, sample for sample.
class ChunkJoiner {
 public:
  // trim: false leaves the silences whole; joins are still faded.
  ChunkJoiner(int sample_rate_hz, double speed, bool trim);

  struct Chunk {
    std::vector<float> samples;
    std::vector<SpokenWord> words;  // seconds from the first of these samples
    std::string_view phonemes;      // its last mark says how long a pause follows
    double pause_after_s = 0;       // silence that the text asks for, behind it
  };
  // The end of what came before and this chunk, but for its last samples, which hang on whether another
  // follows.
  JoinedPiece add(const Chunk& chunk);
  // Silence where no chunk is: a pause at the beginning of a text or of a line.
  JoinedPiece add_pause(double seconds);
  // What is left, once no chunk follows.
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
