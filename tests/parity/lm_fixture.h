// A checkpoint folder with results of the official code, and the count of compared values.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/dual_ar/config.h"
#include "tests/parity/fish_goldens.h"
#include "tests/parity/tally.h"
#include "weights/checkpoint.h"

namespace shoal::parity {

// ||a - b|| / ||b||
double distance(std::span<const float> a, std::span<const float> b);

class LmFixture {
 public:
  // For one check of the folder, named in its report. Token ids are the tokenizer's, or the configuration's
  // where the folder has no tokenizer. Throws Error where the goldens, the checkpoint or the configuration is
  // missing or unreadable, where the configuration is of the other layout than the goldens, where nothing
  // gives the token ids, and where the goldens name no case.
  static LmFixture open(const std::string& dir, const std::string& check);

  const std::string& dir() const { return goldens_.dir; }
  const dual_ar::Config& config() const { return config_; }
  const weights::Checkpoint& checkpoint() const { return checkpoint_; }
  bool is_s1() const { return goldens_.is_s1; }
  const Json::Object& cases() const { return goldens_.cases(); }

  // Goldens of a case. The readers throw Error(not_found) with the full name, and Error(corrupt_file) for
  // another shape or dtype than they promise.
  bool has(const std::string& name, const std::string& golden) const {
    return goldens_.tensors.has(full(name, golden));
  }
  std::vector<float> floats(const std::string& name, const std::string& golden) const;
  // Stored [1 + N, columns], columns >= 1; returned [columns, 1 + N].
  std::vector<int32_t> columns(const std::string& name, const std::string& golden) const;
  // One frame's codes, [N].
  std::vector<int32_t> codes(const std::string& name, const std::string& golden) const;
  // [..., N, codebook_size] of logits at every fast position, as the model computes them:
  // [..., N - 1, residual_codes], codebooks 1 and up.
  std::vector<float> fast_logits(const std::string& name, const std::string& golden) const;

  // A GoogleTest failure that names the golden unless distance(ours, its values) is at most `bound`; counts
  // the values. ours: every row; the golden may keep fewer (kept_rows). `values`: as they are compared, where
  // they are not those stored. A golden that is missing is a failure too.
  void expect_close(const std::string& name, const std::string& golden, std::span<const float> ours,
                    double bound, const std::optional<std::vector<float>>& values = {});
  // Every id equal; says whether.
  bool expect_equal(const std::string& name, const std::string& golden, std::span<const int32_t> ours);
  // An optional golden that is missing.
  void absent(const std::string& name, const std::string& golden) { tally_.absent(name, golden); }

  // Prints what was tried; a failure if nothing was compared.
  void report() const { tally_.report_something(); }

 private:
  LmFixture(FishGoldens goldens, const std::string& checkpoint, const std::string& check);
  void take_token_ids();
  std::string full(const std::string& name, const std::string& golden) const {
    return goldens_.prefix + name + "." + golden;
  }

  FishGoldens goldens_;
  weights::Checkpoint checkpoint_;
  dual_ar::Config config_;
  Tally tally_;
};

}  // namespace shoal::parity
