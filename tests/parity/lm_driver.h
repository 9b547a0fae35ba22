// Runs a DualAR model the way an engine does: ragged batches over paged KV, any chunking, any page placement.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "models/dual_ar/dual_ar.h"
#include "ops/device_testing.h"

namespace shoal::parity {

using LmMachine = ops::TestMachine;

// Copies everything it sees, by "name.index"; several passes of one name are appended.
class TapRecorder : public dual_ar::Taps {
 public:
  void record(std::string_view name, int64_t index, TensorView value) override {
    std::vector<float>& out = values[concat(name, ".", index)];
    for (int64_t row = 0; row < value.dim(0); ++row)
      out.insert(out.end(), value.row<float>(row), value.row<float>(row) + value.dim(1));
  }
  std::span<const int32_t> forced_frames() const override { return forced; }

  std::map<std::string, std::vector<float>> values;
  std::vector<int32_t> forced;
};

struct LmPaging {
  int64_t sequences = 1;
  int64_t columns_per_sequence = 64;  // the most that one sequence can hold
  int64_t page_size = 16;
  uint64_t placement_seed = 0;  // physical pages are a permutation drawn from it; 0: in order
};

class LmDriver {
 public:
  LmDriver(const dual_ar::DualAr& model, ops::Context& ctx, const LmPaging& paging);

  struct Chunk {
    int64_t sequence;
    std::span<const int32_t> columns;  // [columns, 1 + num_codebooks], may be empty
  };
  // Appends columns to sequences, in one batch. The hidden state after the last column of each chunk:
  // [chunks, dim], zero for empty chunks; in host memory.
  Tensor forward(std::span<const Chunk> chunks, dual_ar::Taps* taps = nullptr);
  Tensor forward(int64_t sequence, std::span<const int32_t> columns, dual_ar::Taps* taps = nullptr);
  // One frame for each row of hidden states (host memory), drawn as requested.
  std::vector<int32_t> draw(TensorView hidden, std::span<const dual_ar::FrameRequest> requests,
                            dual_ar::Taps* taps = nullptr);
  // The head's logits of any hidden states: host memory in and out.
  std::vector<float> logits(TensorView hidden) const;
  // A decode step of the sequences, each fed one column: the frames drawn after them.
  std::vector<int32_t> decode(std::span<const Chunk> chunks, std::span<const dual_ar::FrameRequest> requests);
  // Forgets a sequence.
  void reset(int64_t sequence) { lengths_[static_cast<size_t>(sequence)] = 0; }

  // Generates from a prompt until the utterance ends, without other sequences. Frames as in
  // Utterance::frames().
  std::vector<int32_t> generate(int64_t sequence, std::span<const int32_t> prompt,
                                const dual_ar::Sampling& sampling, int64_t max_new_tokens,
                                dual_ar::Taps* taps = nullptr);

 private:
  struct Rows;
  Rows next_rows(std::span<const Chunk> chunks);

  const dual_ar::DualAr& model_;
  ops::Context& ctx_;
  int64_t page_size_, pages_per_sequence_;
  std::vector<int32_t> page_table_;  // [sequences, pages_per_sequence]
  std::vector<int64_t> lengths_;     // columns each sequence holds
  dual_ar::KvCache cache_;
  dual_ar::StepMemory memory_;
};

}  // namespace shoal::parity
