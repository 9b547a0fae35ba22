// Runs a DualAR model the way an engine does: ragged batches over paged KV, any chunking, any page placement.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/thread_team.h"
#include "models/dual_ar/dual_ar.h"
#include "tensor/workspace.h"

namespace shoal::parity {

// A context for one thread.
struct LmMachine {
  explicit LmMachine(int threads = 1) : team(threads) {
    context = {.device = {}, .team = &team, .workspace = &workspace};
  }
  LmMachine(const LmMachine&) = delete;
  ThreadTeam team;
  Workspace workspace;
  ops::Context context;
};

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
  // [chunks, dim], zero for empty chunks.
  Tensor forward(std::span<const Chunk> chunks, dual_ar::Taps* taps = nullptr);
  Tensor forward(int64_t sequence, std::span<const int32_t> columns, dual_ar::Taps* taps = nullptr);
  // Forgets a sequence.
  void reset(int64_t sequence) { lengths_[static_cast<size_t>(sequence)] = 0; }

  // Generates from a prompt until the utterance ends, alone. Frames as in Utterance::frames().
  std::vector<int32_t> generate(int64_t sequence, std::span<const int32_t> prompt,
                                const dual_ar::Sampling& sampling, int64_t max_new_tokens,
                                dual_ar::Taps* taps = nullptr);

 private:
  const dual_ar::DualAr& model_;
  ops::Context& ctx_;
  int64_t page_size_, pages_per_sequence_;
  std::vector<int32_t> page_table_;  // [sequences, pages_per_sequence]
  std::vector<int64_t> lengths_;     // columns each sequence holds
  dual_ar::KvCache cache_;
};

}  // namespace shoal::parity
