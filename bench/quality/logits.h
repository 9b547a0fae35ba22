// Two language models that are fed the same codes.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "shoal/forced_logits.h"

namespace shoal::quality {

// Kullback-Leibler divergence D(p || q) = sum p_i log(p_i / q_i) in nats, p and q the softmax of the logits
// of the reference and the other (Kullback and Leibler 1951). Throws Error(internal) for logits that are NaN
// or infinity, or all -infinity.
double kl_divergence(std::span<const float> reference, std::span<const float> other);

// One head of both: how differently they would choose.
class HeadComparison {
 public:
  // Both are [outputs]. Texts come in order.
  void add(size_t text, int64_t frame, std::span<const float> reference, std::span<const float> other);
  // rows, mean_kl, worst_kl, agreement (share of rows whose largest logit is the same output), worst_text and
  // worst_frame (of worst_kl), worst_agreement (of a text), positions (frames from 0, 16, 64, 256 on).
  nlohmann::ordered_json figures() const;

 private:
  struct Sum {
    int64_t rows = 0, agreeing = 0;
    double kl = 0, worst_kl = 0;
    void add(double divergence, bool agrees);
    double agreement() const { return rows ? static_cast<double>(agreeing) / static_cast<double>(rows) : 1; }
    nlohmann::ordered_json figures() const;
  };

  Sum all_;
  std::vector<Sum> texts_, positions_;
  size_t worst_text_ = 0;
  int64_t worst_frame_ = 0;
};

// A text and what was said: codes [frames, codebooks].
struct ForcedText {
  SpeechRequest request;
  std::vector<int32_t> codes;
};

// "semantic": the head of the first code, or the end; "fast": those of later codes. on_text is told before
// each text, and throws to stop. Throws Error: invalid_argument (heads of other sizes), as ForcedLogits.
nlohmann::ordered_json compare_logits(ForcedLogits& reference, ForcedLogits& other,
                                      const std::vector<ForcedText>& texts,
                                      const std::function<void(size_t text)>& on_text);

}  // namespace shoal::quality
