#include "bench/quality/mel_cepstrum.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>
#include <utility>

namespace shoal::quality {
namespace {

constexpr int kBands = 80;
constexpr double kHop_s = 0.012, kFloor = 1e-4, kTinyPower = 1e-14;

using Complex = std::complex<double>;

// The discrete Fourier transform of in[0], in[stride], ... to out[size], by Cooley and Tukey's recursion over
// the prime factors of the size. roots: exp(-2 pi i n / N), N = size * stride.
void transform(const Complex* in, size_t stride, Complex* out, size_t size,
               const std::vector<Complex>& roots) {
  size_t factor = 2;
  while (factor < size && size % factor != 0) ++factor;
  if (size == 1) {
    *out = *in;
    return;
  }
  const size_t part = size / factor;
  for (size_t r = 0; r < factor; ++r)
    transform(in + r * stride, stride * factor, out + r * part, part, roots);
  std::vector<Complex> terms(factor);
  for (size_t k = 0; k < part; ++k) {
    for (size_t r = 0; r < factor; ++r) terms[r] = std::exchange(out[r * part + k], 0);
    for (size_t at = k; at < size; at += part)
      for (size_t r = 0; r < factor; ++r) out[at] += terms[r] * roots[r * at % size * stride];
  }
}

// [bands, bins]
std::vector<double> mel_filters(size_t bins, double top_hz) {
  const double top_mel = 2595 * std::log10(1 + top_hz / 700);
  const auto edge = [&](int i) { return 700 * (std::pow(10, top_mel * i / (kBands + 1) / 2595) - 1); };
  std::vector<double> filters(kBands * bins);
  for (int band = 0; band < kBands; ++band) {
    const double low = edge(band), middle = edge(band + 1), high = edge(band + 2);
    for (size_t bin = 0; bin < bins; ++bin) {
      const double hz = top_hz * static_cast<double>(bin) / static_cast<double>(bins - 1);
      filters[static_cast<size_t>(band) * bins + bin] =
          std::max(0.0, std::min((hz - low) / (middle - low), (high - hz) / (high - middle)));
    }
  }
  return filters;
}

class Analysis {
 public:
  Analysis(size_t hop, double rate_hz)
      : window_(4 * hop), bins_(window_.size() / 2 + 1), filters_(mel_filters(bins_, rate_hz / 2)) {
    double sum = 0;
    for (size_t i = 0; i < window_.size(); ++i) {
      roots_.push_back(std::polar(
          1.0, -2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(window_.size())));
      sum += window_[i] = 0.5 - 0.5 * roots_[i].real();
    }
    for (double& value : window_) value *= 2 / sum;
  }

  size_t window() const { return window_.size(); }

  Cepstrum cepstrum(std::span<const double> frame) {
    std::vector<Complex> values(window_.size()), spectrum(window_.size());
    for (size_t i = 0; i < frame.size(); ++i) values[i] = frame[i] * window_[i];
    transform(values.data(), 1, spectrum.data(), values.size(), roots_);
    std::vector<double> magnitude(bins_);
    for (size_t i = 0; i < bins_; ++i) magnitude[i] = std::sqrt(std::norm(spectrum[i]) + kTinyPower);
    Cepstrum cepstrum{};
    for (int band = 0; band < kBands; ++band) {
      double sum = 0;
      for (size_t bin = 0; bin < bins_; ++bin)
        sum += magnitude[bin] * filters_[static_cast<size_t>(band) * bins_ + bin];
      const double loudness = std::log(std::max(sum, kFloor));
      for (int order = 1; order <= kCepstra; ++order)
        cepstrum[static_cast<size_t>(order - 1)] +=
            loudness * std::cos(std::numbers::pi / kBands * (band + 0.5) * order) * (2.0 / kBands);
    }
    return cepstrum;
  }

 private:
  std::vector<double> window_;
  size_t bins_;
  std::vector<double> filters_;
  std::vector<Complex> roots_;
};

double distance(const Cepstrum& a, const Cepstrum& b) {
  double squares = 0;
  for (size_t i = 0; i < a.size(); ++i) squares += (a[i] - b[i]) * (a[i] - b[i]);
  return 10 / std::numbers::ln10 * std::sqrt(2 * squares);
}

}  // namespace

std::vector<Cepstrum> mel_cepstra(std::span<const float> samples, int sample_rate_hz) {
  const auto hop = static_cast<size_t>(std::lround(kHop_s * sample_rate_hz));
  Analysis analysis(hop, sample_rate_hz);
  if (samples.size() <= analysis.window() / 2) return {};
  const std::ptrdiff_t count = std::ssize(samples), pad = static_cast<std::ptrdiff_t>(analysis.window() / 2);
  std::vector<double> all;  // mirrored at both ends, which are not repeated
  for (std::ptrdiff_t i = -pad; i < count + pad; ++i)
    all.push_back(samples[static_cast<size_t>(i < 0 ? -i : std::min(i, 2 * count - 2 - i))]);
  std::vector<Cepstrum> cepstra;
  for (size_t at = 0; at + analysis.window() <= all.size(); at += hop)
    cepstra.push_back(analysis.cepstrum(std::span(all).subspan(at, analysis.window())));
  return cepstra;
}

std::optional<double> mel_cepstral_distortion(std::span<const Cepstrum> a, std::span<const Cepstrum> b) {
  if (a.empty() || b.empty()) return std::nullopt;
  struct Path {
    double cost = INFINITY;
    int64_t cells = 0;
  };
  std::vector<Path> before(b.size() + 1), row(b.size() + 1);
  before[0].cost = 0;
  for (const Cepstrum& of_a : a) {
    row[0] = {};
    for (size_t j = 0; j < b.size(); ++j) {
      Path best = before[j];  // of equal paths the one with the longest step
      for (const Path& other : {before[j + 1], row[j]})
        if (other.cost < best.cost) best = other;
      row[j + 1] = {best.cost + distance(of_a, b[j]), best.cells + 1};
    }
    std::swap(before, row);
  }
  return before.back().cost / static_cast<double>(before.back().cells);
}

}  // namespace shoal::quality
