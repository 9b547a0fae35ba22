#include "ops/ref/vector.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace shoal::ops::ref {
namespace {

double mean(const Values& x) {
  return std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size());
}

double dot(const Values& q, const double* key) { return std::inner_product(q.begin(), q.end(), key, 0.0); }

}  // namespace

Values rms_norm(const Values& x, const Values& weight, double eps) {
  const double square =
      std::inner_product(x.begin(), x.end(), x.begin(), 0.0) / static_cast<double>(x.size());
  Values y;
  for (size_t i = 0; i < x.size(); ++i) y.push_back(x[i] / std::sqrt(square + eps) * weight[i]);
  return y;
}

Values layer_norm(const Values& x, const Values& weight, const Values& bias, double eps) {
  Values centred = x;
  const double middle = mean(x);
  for (double& value : centred) value -= middle;
  Values y = rms_norm(centred, weight, eps);
  for (size_t i = 0; i < y.size(); ++i) y[i] += bias[i];
  return y;
}

double leaky_relu(double x, double slope) { return x < 0 ? slope * x : x; }

double plain_snake(double x, double alpha) {
  const double s = std::sin(alpha * x);
  return x + s * s / alpha;
}

Values adain(const Values& x, const Values& scales, const Values& shifts, double eps) {
  const size_t channels = scales.size();
  Values y(x.size());
  for (size_t c = 0; c < channels; ++c) {
    Values column;
    for (size_t i = c; i < x.size(); i += channels) column.push_back(x[i]);
    column = layer_norm(column, Values(column.size(), 1 + scales[c]), Values(column.size(), shifts[c]), eps);
    for (size_t row = 0; row < column.size(); ++row) y[row * channels + c] = column[row];
  }
  return y;
}

Values double_rows(const Values& x, const Values& weight, const Values& bias) {
  const auto channels = static_cast<int64_t>(bias.size()),
             outputs = 2 * static_cast<int64_t>(x.size()) / channels;
  Values y;
  for (int64_t row = 0; row < outputs; ++row) y.insert(y.end(), bias.begin(), bias.end());
  for (int64_t i = 0; i < outputs / 2; ++i)
    for (int64_t tap = 0; tap < 3; ++tap) {
      const int64_t row = 2 * i + tap - 1;
      if (row < 0 || row >= outputs) continue;
      for (int64_t c = 0; c < channels; ++c)
        y[static_cast<size_t>(row * channels + c)] +=
            x[static_cast<size_t>(i * channels + c)] * weight[static_cast<size_t>(tap * channels + c)];
    }
  return y;
}

Values rotate_pairs(const Values& x, const Values& cos_sin) {
  Values y(x.size());
  for (size_t i = 0; i < x.size(); i += 2) {
    y[i] = x[i] * cos_sin[i] - x[i + 1] * cos_sin[i + 1];
    y[i + 1] = x[i + 1] * cos_sin[i] + x[i] * cos_sin[i + 1];
  }
  return y;
}

Values attention(const Values& q, const Values& keys, const Values& values) {
  const size_t dim = q.size(), positions = keys.size() / dim;
  Values scores;
  for (size_t k = 0; k < positions; ++k)
    scores.push_back(dot(q, keys.data() + k * dim) / std::sqrt(static_cast<double>(dim)));
  const double largest = *std::max_element(scores.begin(), scores.end());
  Values out(dim);
  double total = 0;
  for (size_t k = 0; k < positions; ++k) {
    const double weight = std::exp(scores[k] - largest);
    total += weight;
    for (size_t d = 0; d < dim; ++d) out[d] += weight * values[k * dim + d];
  }
  for (double& value : out) value /= total;
  return out;
}

double score_magnitude(const Values& q, const Values& keys) {
  double largest = 0;
  for (size_t at = 0; at < keys.size(); at += q.size()) {
    double sum = 0;
    for (size_t d = 0; d < q.size(); ++d) sum += std::abs(q[d] * keys[at + d]);
    largest = std::max(largest, sum);
  }
  return largest / std::sqrt(static_cast<double>(q.size()));
}

std::vector<int32_t> kept_by_sorting(std::span<const float> logits, const Values& weights, float top_p,
                                     int64_t top_k) {
  std::vector<int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::erase_if(ids, [&](int32_t id) { return std::isinf(logits[static_cast<size_t>(id)]); });
  std::stable_sort(ids.begin(), ids.end(), [&](int32_t a, int32_t b) {
    return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
  });
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  double sum = 0;
  size_t kept = 0;
  for (; kept < ids.size(); ++kept) {
    sum += weights[static_cast<size_t>(ids[kept])];
    if (kept == 0) continue;
    if (top_p < 1.0f && sum > static_cast<double>(top_p) * total) break;
    if (top_k > 0 && static_cast<int64_t>(kept) >= top_k) break;
  }
  ids.resize(kept);
  return ids;
}

}  // namespace shoal::ops::ref
