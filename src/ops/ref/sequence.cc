#include "ops/ref/sequence.h"

#include <cmath>
#include <numbers>

#include "base/philox.h"

namespace shoal::ops::ref {
namespace {

constexpr double kUnit = 0x1p-24;  // half an ulp of f32
constexpr double kTurn = 2 * std::numbers::pi;

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

struct Number {
  double value = 0, bound = 0;
};

double cosine(int64_t i, int64_t points) {
  return std::cos(kTurn * static_cast<double>(i % points) / static_cast<double>(points));
}
double sine(int64_t i, int64_t points) {
  return std::sin(kTurn * static_cast<double>(i % points) / static_cast<double>(points));
}
double window(int64_t n, int64_t points) { return 0.5 - 0.5 * cosine(n, points); }

// Sum of a row of weights times inputs; its error is at most `units` of its magnitude.
Number product(const Values& weights, int64_t row, const double* x, int64_t count, double units) {
  Number sum;
  for (int64_t k = 0; k < count; ++k) {
    const double term = weights[static_cast<size_t>(row * count + k)] * x[k];
    sum.value += term;
    sum.bound += units * kUnit * std::abs(term);
  }
  return sum;
}

}  // namespace

Bounded lstm(const Values& x, const Lstm& weights) {
  const int64_t hidden = weights.hidden, rows = static_cast<int64_t>(x.size()) / weights.inputs;
  const auto units = static_cast<double>(weights.inputs + hidden + 8);
  Values h(static_cast<size_t>(hidden)), h_bound = h;
  std::vector<Number> cells(h.size());
  Bounded all;
  for (int64_t t = 0; t < rows; ++t) {
    const auto gate = [&](int64_t row) {
      const auto at = static_cast<size_t>(row);
      Number sum = product(weights.weight_ih, row, x.data() + t * weights.inputs, weights.inputs, units);
      const Number recurrent = product(weights.weight_hh, row, h.data(), hidden, units);
      sum.value += recurrent.value + weights.bias[at];
      sum.bound += recurrent.bound + units * kUnit * std::abs(weights.bias[at]);
      for (int64_t k = 0; k < hidden; ++k)
        sum.bound += std::abs(weights.weight_hh[static_cast<size_t>(row * hidden + k)]) *
                     h_bound[static_cast<size_t>(k)];
      return sum;
    };
    Values next, next_bound;
    for (int64_t j = 0; j < hidden; ++j) {
      Number& cell = cells[static_cast<size_t>(j)];
      const Number input = gate(j), forget = gate(hidden + j);
      const Number candidate = gate(2 * hidden + j), output = gate(3 * hidden + j);
      const double i = sigmoid(input.value), f = sigmoid(forget.value);
      const double g = std::tanh(candidate.value), o = sigmoid(output.value);
      // A sigmoid rises by at most 1/4, a tanh by at most 1.
      const double bound = f * cell.bound + forget.bound / 4 * std::abs(cell.value) +
                           input.bound / 4 * std::abs(g) + i * candidate.bound;
      cell.value = f * cell.value + i * g;
      cell.bound = bound + 8 * kUnit * (std::abs(cell.value) + std::abs(i * g));
      const double c = std::tanh(cell.value);
      next.push_back(o * c);
      next_bound.push_back(output.bound / 4 * std::abs(c) + o * cell.bound + 8 * kUnit * std::abs(o * c) +
                           1e-37);
    }
    h = next;
    h_bound = next_bound;
    all.values.insert(all.values.end(), h.begin(), h.end());
    all.bounds.insert(all.bounds.end(), h_bound.begin(), h_bound.end());
  }
  return all;
}

double source_noise(uint64_t seed, int64_t sample, int64_t harmonic) {
  const auto block = static_cast<uint32_t>(sample / 64 * 16 + sample % 16);
  const auto words = philox4x32(seed, {block, static_cast<uint32_t>(harmonic), 0, 1});
  const auto word = static_cast<size_t>(sample / 16 % 4);
  const double radius = std::sqrt(-2 * std::log(static_cast<double>(uniform_open(words[word / 2 * 2]))));
  const double angle = kTurn * static_cast<double>(uniform_open(words[word / 2 * 2 + 1]));
  return radius * (word % 2 == 0 ? std::cos(angle) : std::sin(angle));
}

Values harmonic_source(const Values& f0, const Values& noise, const Source& source) {
  const auto rows = static_cast<int64_t>(f0.size()), width = source.samples_per_row;
  const auto harmonics = static_cast<int64_t>(source.weights.size());
  Values out;
  std::vector<Values> turns(source.weights.size());  // [harmonic][row], up to and with the row
  for (int64_t h = 0; h < harmonics; ++h) {
    double sum = 0;
    for (const double f : f0) {
      const double rate = static_cast<double>(h + 1) * f / static_cast<double>(source.sample_rate_hz);
      sum += rate - std::floor(rate);
      turns[static_cast<size_t>(h)].push_back(sum);
    }
  }
  for (int64_t t = 0; t < rows * width; ++t) {
    const double at = (static_cast<double>(t) + 0.5) / static_cast<double>(width) - 0.5;
    const double u = std::min(std::max(at, 0.0), static_cast<double>(rows - 1));
    const auto row = static_cast<size_t>(u), next = std::min(row + 1, f0.size() - 1);
    const double share = u - std::floor(u);
    const bool voiced = f0[static_cast<size_t>(t / width)] > 10;
    double sum = source.bias;
    for (int64_t h = 0; h < harmonics; ++h) {
      const Values& own = turns[static_cast<size_t>(h)];
      const double phase = static_cast<double>(width) * ((1 - share) * own[row] + share * own[next]);
      const double tone = voiced ? 0.1 * std::sin(kTurn * (phase - std::floor(phase))) : 0;
      const double level = voiced ? 0.003 : 0.1 / 3;
      sum += source.weights[static_cast<size_t>(h)] *
             (tone + level * noise[static_cast<size_t>(t * harmonics + h)]);
    }
    out.push_back(std::tanh(sum));
  }
  return out;
}

Values stft(const Values& x, int64_t points, int64_t hop) {
  const auto samples = static_cast<int64_t>(x.size());
  Values spectra;
  for (int64_t t = 0; t <= samples / hop; ++t)
    for (int64_t k = 0; k <= points / 2; ++k) {
      double re = 0, im = 0;
      for (int64_t n = 0; n < points; ++n) {
        int64_t at = std::abs(t * hop - points / 2 + n);
        if (at >= samples) at = 2 * (samples - 1) - at;
        const double value = window(n, points) * x[static_cast<size_t>(at)];
        re += value * cosine(k * n, points);
        im -= value * sine(k * n, points);
      }
      spectra.push_back(re);
      spectra.push_back(k == 0 || 2 * k == points ? 0 : im);
    }
  return spectra;
}

Values inverse_stft(const Values& spectra, int64_t points, int64_t hop) {
  const int64_t bins = points / 2 + 1, frames = static_cast<int64_t>(spectra.size()) / (2 * bins);
  Values sum(static_cast<size_t>((frames - 1) * hop + points)), squares(sum.size());
  for (int64_t t = 0; t < frames; ++t)
    for (int64_t n = 0; n < points; ++n) {
      double value = 0;
      for (int64_t k = 0; k < bins; ++k) {
        const double* bin = spectra.data() + (t * bins + k) * 2;
        const bool real = k == 0 || 2 * k == points;
        value += real ? bin[0] * cosine(k * n, points)
                      : 2 * (bin[0] * cosine(k * n, points) - bin[1] * sine(k * n, points));
      }
      const auto at = static_cast<size_t>(t * hop + n);
      sum[at] += window(n, points) * value / static_cast<double>(points);
      squares[at] += window(n, points) * window(n, points);
    }
  Values out;
  for (int64_t i = 0; i < (frames - 1) * hop; ++i) {
    const auto at = static_cast<size_t>(i + points / 2);
    out.push_back(sum[at] / squares[at]);
  }
  return out;
}

}  // namespace shoal::ops::ref
