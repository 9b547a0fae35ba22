// A folder of a checkpoint with what the official code computed from it, and the count of what was compared.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "models/dual_ar/config.h"
#include "weights/checkpoint.h"

namespace shoal::parity {

// ||a - b|| / ||b||
double distance(std::span<const float> a, std::span<const float> b);

class LmFixture {
 public:
  // Throws Error where the goldens, the checkpoint or the configuration is missing or unreadable, and where
  // the goldens name no case.
  static LmFixture open(const std::string& dir);
  // Whether any file of goldens lies there: a half of the pair is for open() to refuse.
  static bool lies_in(const std::string& dir);

  const std::string& dir() const { return dir_; }
  const dual_ar::Config& config() const { return config_; }
  const weights::Checkpoint& checkpoint() const { return checkpoint_; }
  bool is_s1() const { return config_.family == dual_ar::Family::s1; }
  const Json::Object& cases() const { return goldens_.at("cases").as_object(); }

  // Goldens by their names without "lm." or "s2.". The readers throw Error(not_found) with the full name, and
  // Error(corrupt_file) for another shape or dtype than they promise.
  bool has(const std::string& name) const { return values_.contains(prefix() + name); }
  std::vector<float> floats(const std::string& name) const;
  // Stored [1 + N, columns], columns >= 1; returned [columns, 1 + N].
  std::vector<int32_t> columns(const std::string& name) const;
  // One frame's codes, [N].
  std::vector<int32_t> codes(const std::string& name) const;
  // [..., N, codebook_size] of logits at every fast position, as the model computes them:
  // [..., N - 1, residual_codes], codebooks 1 and up.
  std::vector<float> fast_logits(const std::string& name) const;

  // A GoogleTest failure unless distance(ours, golden) is at most `bound`; counts the values.
  void expect_close(const std::string& name, std::span<const float> ours, std::span<const float> golden,
                    double bound);
  // The same against the golden of that name, whose absence is a failure too.
  void expect_golden(const std::string& name, std::span<const float> ours, double bound);
  // Every id equal; says whether.
  bool expect_equal(const std::string& name, std::span<const int32_t> ours, std::span<const int32_t> golden);

  // Prints, and records with the running test, how many values `check` compared; none is a failure.
  void report(const std::string& check) const;

 private:
  LmFixture(std::string dir, const std::string& goldens, const std::string& checkpoint);
  const char* prefix() const { return is_s1() ? "lm." : "s2."; }
  TensorView golden(const std::string& name) const;

  std::string dir_;
  Json goldens_;
  weights::Checkpoint values_, checkpoint_;
  dual_ar::Config config_;
  int64_t compared_ = 0;
};

}  // namespace shoal::parity
