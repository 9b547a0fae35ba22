// What the tests of the convolutions share.
#pragma once

#include "ops/conv1d.h"
#include "ops/matrix_testing.h"

namespace shoal::ops {

// The histories of a batch as the ops keep them: in slots of a pool, in another order than the sequences,
// each with something before and behind it that must stay.
class HistoryPool {
 public:
  HistoryPool(const std::vector<std::vector<float>>& histories, int64_t floats) : floats_(floats) {
    const auto sequences = static_cast<int64_t>(histories.size());
    pool_ = Tensor(DType::f32, {sequences + 1, kOffset + floats + 2});
    std::ranges::fill(pool_.span<float>(), kOther);
    for (int64_t s = 0; s < sequences; ++s) {
      slots_.push_back(static_cast<int32_t>(sequences - s));
      std::ranges::copy(histories[static_cast<size_t>(s)], history(s));
    }
  }

  ConvHistory view() const { return {floats_ > 0 ? pool_.view() : TensorView(), kOffset, slots_}; }

  void take(std::vector<std::vector<float>>& histories) {
    for (size_t s = 0; s < histories.size(); ++s) {
      float* const first = history(static_cast<int64_t>(s));
      histories[s].assign(first, first + floats_);
      std::fill_n(first, floats_, kOther);
    }
    EXPECT_THAT(pool_.span<float>(), testing::Each(kOther));
  }

 private:
  static constexpr int64_t kOffset = 3;
  static constexpr float kOther = -77.0f;

  float* history(int64_t s) const {
    return pool_.view().row<float>(slots_[static_cast<size_t>(s)]) + kOffset;
  }

  int64_t floats_;
  Tensor pool_;
  std::vector<int32_t> slots_;
};

inline std::vector<float> rows_of(const std::vector<float>& x, int64_t width, int64_t begin, int64_t end) {
  return {x.begin() + begin * width, x.begin() + end * width};
}

inline void append(std::vector<float>& all, const std::vector<float>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

}  // namespace shoal::ops
