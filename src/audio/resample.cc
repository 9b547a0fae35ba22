#include "audio/resample.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <numeric>

#include "base/error.h"

namespace shoal::audio {
namespace {

constexpr double kZeroCrossings = 6;  // W, "lowpass_filter_width"
constexpr double kRollOff = 0.99;
constexpr int kMaxClipRateHz = 1'000'000;
constexpr int64_t kMaxOutputSamples = int64_t{1} << 31;

// The filters of all output phases. The specification gives each phase 2*width + o taps, of which all but
// those within W zero crossings are zero (the clamp puts them on a zero of the window): only these are kept,
// so coprime rates such as 44101 -> 44100 need megabytes, not gigabytes.
class PolyphaseKernel {
 public:
  // from, to: the rates divided by their gcd. phases: how many of the `to` phases will be used.
  PolyphaseKernel(int64_t from, int64_t to, int64_t phases)
      : from_(from), to_(to), cutoff_(static_cast<double>(std::min(from, to)) * kRollOff) {
    const int64_t reach =
        static_cast<int64_t>(std::ceil(kZeroCrossings * static_cast<double>(from) / cutoff_));
    taps_ = 2 * reach + 2;  // covers (centre - reach, centre + reach) for any fraction of the centre
    first_.resize(static_cast<size_t>(phases));
    values_.resize(static_cast<size_t>(phases * taps_));
    for (int64_t phase = 0; phase < phases; ++phase) fill(phase, phase * from / to - reach);
  }

  int64_t taps() const { return taps_; }
  // Input index of the first tap, relative to the first input of the phase's block.
  int64_t first(int64_t phase) const { return first_[static_cast<size_t>(phase)]; }
  const float* values(int64_t phase) const { return values_.data() + phase * taps_; }

 private:
  void fill(int64_t phase, int64_t first) {
    first_[static_cast<size_t>(phase)] = first;
    for (int64_t tap = 0; tap < taps_; ++tap)
      values_[static_cast<size_t>(phase * taps_ + tap)] = static_cast<float>(value(first + tap, phase));
  }

  // The kernel h for tap i and output phase j. The official code divides the phase j / n in
  // float32 (integers divided in PyTorch's default type) and only then goes on in float64; its rounding moves
  // the result by up to 1e-5, so it is part of the definition.
  double value(int64_t i, int64_t j) const {
    const double o = static_cast<double>(from_);
    const double phase = static_cast<double>(static_cast<float>(j) / static_cast<float>(to_));
    const double t = (static_cast<double>(i) / o - phase) * cutoff_;
    if (std::abs(t) >= kZeroCrossings) return 0.0;
    const double angle = std::numbers::pi * t;
    const double window = std::cos(angle / (2 * kZeroCrossings));
    return (t == 0 ? 1.0 : std::sin(angle) / angle) * window * window * cutoff_ / o;
  }

  int64_t from_, to_;
  double cutoff_;
  int64_t taps_ = 0;
  std::vector<int64_t> first_;  // [phases]
  std::vector<float> values_;   // [phases, taps]
};

void check_rates(int from_hz, int to_hz) {
  for (const int rate : {from_hz, to_hz})
    if (rate < 1 || rate > kMaxClipRateHz)
      fail(ErrorCode::invalid_argument, "sample rate: expected 1 to ", kMaxClipRateHz, " Hz, got ", rate);
}

}  // namespace

std::vector<float> resample(std::span<const float> in, int from_hz, int to_hz) {
  check_rates(from_hz, to_hz);
  if (from_hz == to_hz || in.empty()) return {in.begin(), in.end()};
  const int64_t divisor = std::gcd(from_hz, to_hz), from = from_hz / divisor, to = to_hz / divisor;
  const int64_t length = static_cast<int64_t>(in.size());
  if (length > kMaxOutputSamples / to * from)
    fail(ErrorCode::too_large, "resampling ", length, " samples from ", from_hz, " to ", to_hz,
         " Hz: more than ", kMaxOutputSamples, " samples would result");
  const int64_t out_length = (length * to + from - 1) / from;

  const PolyphaseKernel kernel(from, to, std::min(to, out_length));
  std::vector<float> out(static_cast<size_t>(out_length));
  for (int64_t block = 0, produced = 0; produced < out_length; ++block) {
    for (int64_t phase = 0; phase < to && produced < out_length; ++phase, ++produced) {
      // Outside the clip the signal is zero, so the taps there are skipped.
      const int64_t start = block * from + kernel.first(phase);
      const int64_t begin = std::max<int64_t>(0, -start), end = std::min(kernel.taps(), length - start);
      const float* taps = kernel.values(phase);
      double sum = 0;
      for (int64_t tap = begin; tap < end; ++tap)
        sum += static_cast<double>(taps[tap]) * static_cast<double>(in[static_cast<size_t>(start + tap)]);
      out[static_cast<size_t>(produced)] = static_cast<float>(sum);
    }
  }
  return out;
}

}  // namespace shoal::audio
