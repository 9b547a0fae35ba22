// The rules of generating one utterance: what is penalised, when it ends, which frames are speech. Pure: no
// tensors, no clock, so that tests replay them step by step (MODEL.md 5, 6).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "models/dual_ar/config.h"

namespace shoal::dual_ar {

// Deviations from the reference. All false: the same as the official code.
struct Quirks {
  // S1: penalise the semantic tokens of the last 16 frames. Official: the token and the codes (read as token
  // ids) of one frame, the oldest of the window (MODEL.md 5).
  bool penalise_window_semantics = false;
  // End when the very first frame is <|im_end|>. Official: the frame is kept and generation continues.
  bool check_first_frame_end = false;
  // Keep the last frame when the length ran out before <|im_end|>. Official: the last frame is always
  // dropped.
  bool keep_last_frame_without_end = false;
  // S1: draw semantic tokens and <|im_end|> only. Official: any token of the vocabulary. S2 always does this.
  bool semantic_only = false;
};

struct Sampling {
  float temperature = 0.8f;         // 0..2
  float top_p = 0.8f;               // 0..1; 0 is greedy (S2: top_k 1 is, see MODEL.md 5)
  float repetition_penalty = 1.1f;  // over 0, at most 2; S2 ignores it
  int32_t top_k = 0;                // 0: no limit
  uint64_t seed = 0;
  Quirks quirks = {};

  // The official settings: S1 0.8, 0.8, 1.1, no top-k; S2 1.0, 0.9, top-k 30.
  static Sampling defaults(Family family);
};

// Throws Error(invalid_argument) naming the field, its range and its value.
void check_sampling(const Sampling& sampling);

// How one frame of one sequence is to be drawn. The spans point into the Utterance it came from and are valid
// until its next accept().
struct FrameRequest {
  float temperature = 0.8f, top_p = 0.8f, repetition_penalty = 1.0f;
  int32_t top_k = 0;
  uint64_t seed = 0;
  uint32_t frame = 0;                              // index within the utterance
  bool semantic_only = false;                      // no text tokens
  std::span<const int32_t> penalised_tokens = {};  // token ids
  std::span<const int32_t> penalised_codes =
      {};                                       // [num_codebooks, kPenaltyWindow] codes by codebook; or empty
  std::span<const int32_t> recent_tokens = {};  // S2: a semantic token among these is sampled again
};

inline constexpr int64_t kPenaltyWindow = 16;  // S1: frames (MODEL.md 5)
inline constexpr int64_t kRecentTokens = 10;   // S2: frames (MODEL.md 5)

enum class FinishReason : uint8_t { end_token, length };

// The longest prompt that leaves room for speech: max_positions - 2048 as in the reference, or half of
// max_positions for models with less than 4096.
int64_t prompt_limit(const Config& config);

// Ids of a prompt, [columns, 1 + num_codebooks], against the tables that are read for them: to be called at
// admission, because a bad id in a batch fails the whole step. Throws Error(invalid_argument) naming the
// column, the row, the range and the id.
void check_columns(const Config& config, std::span<const int32_t> columns);

class Utterance {
 public:
  // max_new_tokens: frames, 0 for as many as fit. Throws Error: too_large (prompt_columns leaves no room),
  // invalid_argument (sampling, no prompt, negative length).
  Utterance(const Config& config, const Sampling& sampling, int64_t prompt_columns, int64_t max_new_tokens);

  // For the frame after the accepted ones. Must not be called once finished.
  FrameRequest next_request() const;

  // Takes the next frame: the token, then the codes [1 + num_codebooks]. Returns true when it was the last.
  bool accept(std::span<const int32_t> frame);

  bool finished() const { return finish_reason_.has_value(); }
  std::optional<FinishReason> finish_reason() const { return finish_reason_; }

  // Every accepted frame, [frame_count, 1 + num_codebooks]: the columns that follow the prompt.
  std::span<const int32_t> frames() const { return frames_; }
  int64_t frame_count() const { return static_cast<int64_t>(frames_.size()) / columns_; }
  std::span<const int32_t> last_frame() const;  // the column to feed next

  // How many frames, from the first, are certainly speech: a frame is known not to be the dropped last one as
  // soon as generation continues after it. Final once finished.
  int64_t speech_frames() const;

  int64_t max_frames() const { return max_frames_; }
  int64_t prompt_columns() const { return prompt_columns_; }
  // Positions used by the prompt and all frames except the last, which is fed at this position.
  int64_t next_position() const { return prompt_columns_ + frame_count() - 1; }

 private:
  void remember(std::span<const int32_t> frame);

  Sampling sampling_;
  Family family_;
  int64_t columns_;  // 1 + num_codebooks
  int32_t im_end_;
  int64_t prompt_columns_;
  int64_t max_frames_;
  std::vector<int32_t> frames_;
  // S1: the last 16 loop frames as a ring, [1 + num_codebooks, 16]; frame i of the loop is in slot i mod 16.
  std::vector<int32_t> window_;
  std::vector<int32_t> oldest_;  // S1: the frame whose values are penalised as token ids
  std::vector<int32_t> recent_;  // S2: tokens of the last 10 loop frames, ring
  std::optional<FinishReason> finish_reason_;
};

}  // namespace shoal::dual_ar
