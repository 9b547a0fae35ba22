#include "ops/cpu/sampling/vector_sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <ranges>

#include "ops/cpu_backend.h"

namespace shoal::ops::cpu {
namespace {

constexpr float kLeastTemperature = 1e-5f;  // dual_ar/MODEL.md 5
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kLowest = std::numeric_limits<float>::lowest();

// 2^-36 of the maximum is reached at a distance of 25: entries farther away have no weight.
constexpr float kMostDistance = 32.0f;

int64_t padded(int64_t entries) { return (entries + 15) / 16 * 16; }

// The first id looked at is a multiple of four, as blocks of noise are.
int64_t most_entries(int64_t vocab) { return padded(vocab + 3); }

float divisor_of(float temperature) { return std::max(temperature, kLeastTemperature); }

bool keeps_one(const SampleRow& row) { return row.top_p <= kGreedyTopP || row.top_k == 1; }

// The median of some of the entries.
float middling(const WeightedLogits& entries) {
  constexpr int64_t kSample = 7;
  float sample[kSample];
  const int64_t taken = std::min(entries.count, kSample);
  for (int64_t i = 0; i < taken; ++i) sample[i] = entries.logits[i * entries.count / taken];
  std::nth_element(sample, sample + taken / 2, sample + taken);
  return sample[taken / 2];
}

}  // namespace

int64_t RowSampler::scratch_bytes(int64_t vocab) {
  return most_entries(vocab) * static_cast<int64_t>(4 * sizeof(float)) +
         most_entries(vocab) / 4 * static_cast<int64_t>(sizeof(int32_t));
}

RowSampler::RowSampler(int64_t vocab, void* scratch)
    : kernels_(vector_kernels()),
      vocab_(vocab),
      logits_(static_cast<float*>(scratch)),
      weights_(logits_ + most_entries(vocab)),
      candidates_{weights_ + most_entries(vocab), weights_ + 2 * most_entries(vocab), 0},
      blocks_(reinterpret_cast<int32_t*>(weights_ + 3 * most_entries(vocab))) {}

// Ids outside the allowed range are left out where they can be, else -inf.
void RowSampler::prepare(const float* logits, const SampleRow& row) {
  const bool all = row.allowed_end < 0;
  int64_t begin = all ? 0 : row.allowed_begin, end = all ? vocab_ : int64_t{row.allowed_end} + 1;
  const float* const allowed_begin = logits + begin;
  const float* const allowed_end = logits + end;
  if (!all && row.allowed_extra >= 0) {
    begin = std::min<int64_t>(begin, row.allowed_extra);
    end = std::max<int64_t>(end, row.allowed_extra + 1);
  }
  first_ = begin / 4 * 4;
  count_ = end - first_;
  float* const copied = logits_ + (allowed_begin - logits) - first_;
  std::fill(logits_, copied, -kInfinity);
  std::fill(std::copy(allowed_begin, allowed_end, copied), logits_ + padded(count_), -kInfinity);
  if (!all && row.allowed_extra >= 0) logits_[row.allowed_extra - first_] = logits[row.allowed_extra];
  for (const int32_t id : row.penalised) {  // from the original value: duplicates change nothing
    if (id < first_ || id >= end || logits_[id - first_] == -kInfinity) continue;
    logits_[id - first_] =
        logits[id] < 0 ? logits[id] * row.repetition_penalty : logits[id] / row.repetition_penalty;
  }
}

void RowSampler::find_maximum() {
  bool has_nan = false;
  maximum_ = kernels_.max(logits_, count_, &has_nan);
  if (has_nan) fail(ErrorCode::invalid_argument, "sample: the logits contain NaN");
  if (maximum_ == kInfinity) fail(ErrorCode::invalid_argument, "sample: the logits contain infinity");
  if (maximum_ == -kInfinity)
    fail(ErrorCode::invalid_argument, "sample: no id may be drawn: all logits are -inf");
}

int32_t RowSampler::rank_zero() {
  kernels_.blocks_at_least(logits_, maximum_, blocks_, count_);
  const float* const block = logits_ + 4 * int64_t{blocks_[0]};
  return static_cast<int32_t>(first_ + (std::find(block, block + 4, maximum_) - logits_));
}

void RowSampler::keep(const SampleRow& row) {
  least_ = kLowest;
  const bool any_weight = row.top_p >= 1.0f;  // no sum of probabilities exceeds 1
  const int64_t most = row.top_k > 0 ? row.top_k : count_;
  if (any_weight && most >= count_) return;
  const double total = kernels_.softmax_weights(logits_, maximum_, weights_, count_);
  keep_within(
      {any_weight ? std::numeric_limits<double>::infinity() : static_cast<double>(row.top_p) * total, most});
}

float RowSampler::weight_of(float logit) const {
  float weight = 0;
  kernels_.softmax_weights(&logit, maximum_, &weight, 1);
  return weight;
}

// The entries within a growing distance of the maximum, until they are more than may be kept.
void RowSampler::gather_candidates(const Limits& limits) {
  const WeightedLogits all{logits_, weights_, count_};
  for (float distance = 2; distance <= kMostDistance; distance *= 2) {
    const double weight = kernels_.narrow(all, maximum_ - distance, kInfinity, &candidates_);
    if (!limits.allow(weight, candidates_.count)) return;
  }
  kernels_.narrow(all, -kInfinity, kInfinity, &candidates_);
}

void RowSampler::keep_within(const Limits& limits) {
  double weight = 0;  // of the entries certain to be kept, which are above all candidates
  int64_t kept = 0;
  gather_candidates(limits);
  while (candidates_.count > 0) {
    const float pivot = middling(candidates_);
    const Above above = kernels_.above(candidates_, pivot);
    if (!limits.allow(weight + above.weight, kept + above.count)) {
      kernels_.narrow(candidates_, pivot, kInfinity, &candidates_);
      continue;
    }
    weight += above.weight;
    kept += above.count;
    const double each = weight_of(pivot);  // products with a count are as exact as sums
    const auto fit = [&](int64_t n) {
      return limits.allow(weight + static_cast<double>(n) * each, kept + n);
    };
    if (!fit(above.equal)) {
      int64_t equal = *std::ranges::partition_point(std::views::iota(int64_t{1}, above.equal), fit) - 1;
      if (kept == 0) equal = std::max<int64_t>(equal, 1);  // rank 0
      return cut_at(pivot, equal, above.equal);
    }
    weight += static_cast<double>(above.equal) * each;
    kept += above.equal;
    kernels_.narrow(candidates_, -kInfinity, pivot, &candidates_);
  }
}

// Keeps the entries above the logit, and the first `kept` of the `equal` ones.
void RowSampler::cut_at(float logit, int64_t kept, int64_t equal) {
  least_ = kept > 0 ? logit : std::nextafter(logit, kInfinity);
  if (kept == 0 || kept == equal) return;
  float* entry = logits_;
  for (int64_t i = 0; i < kept; ++i) entry = std::find(entry, logits_ + count_, logit) + 1;
  std::replace(entry, logits_ + count_, logit, -kInfinity);
}

int32_t RowSampler::draw(const float* logits, const SampleRow& row) {
  prepare(logits, row);
  find_maximum();
  if (keeps_one(row)) return rank_zero();
  keep(row);
  const Race race{.logits = logits_,
                  .least = least_,
                  .max = maximum_,
                  .temperature = divisor_of(row.temperature),
                  .blocks = blocks_,
                  .block_count = kernels_.blocks_at_least(logits_, least_, blocks_, count_),
                  .noise = {row.seed, row.frame, row.codebook},
                  .first_block = static_cast<uint32_t>(first_ / 4)};
  return static_cast<int32_t>(first_ + kernels_.race(race));
}

SamplingDistribution RowSampler::distribution(const float* logits, const SampleRow& row) {
  prepare(logits, row);
  find_maximum();
  if (keeps_one(row)) return {{rank_zero()}, {1.0f}};
  keep(row);
  SamplingDistribution result;
  for (int64_t i = 0; i < count_; ++i) {
    if (logits_[i] < least_) continue;
    result.ids.push_back(static_cast<int32_t>(first_ + i));
    result.probabilities.push_back((logits_[i] - maximum_) / divisor_of(row.temperature));
  }
  float* const weights = result.probabilities.data();
  kernels_.exp_nonpositive(weights, weights, static_cast<int64_t>(result.ids.size()));
  double total = 0;
  for (const float weight : result.probabilities) total += weight;
  for (float& weight : result.probabilities) weight = static_cast<float>(weight / total);
  return result;
}

SamplingDistribution sampling_distribution(std::span<const float> logits, const SampleRow& row) {
  const auto vocab = static_cast<int64_t>(logits.size());
  std::vector<char> scratch(static_cast<size_t>(RowSampler::scratch_bytes(vocab)) + 64);
  const auto address = reinterpret_cast<uintptr_t>(scratch.data());
  return RowSampler(vocab, scratch.data() + (64 - address % 64)).distribution(logits.data(), row);
}

void sample(Context& ctx, TensorView logits, std::span<const SampleRow> rows, std::span<int32_t> tokens) {
  const Workspace::Scope scope(*ctx.workspace);
  const int64_t count = logits.dim(0), vocab = logits.dim(1);
  const int64_t workers = count == 1 ? 1 : ctx.team->size();  // one row is worked on by the caller
  const TensorView scratch =
      ctx.workspace->alloc(DType::u8, {workers, (RowSampler::scratch_bytes(vocab) + 63) / 64 * 64});
  ctx.team->parallel_for(count, 1, [&](int64_t begin, int64_t end, int worker) {
    RowSampler sampler(vocab, scratch.row<uint8_t>(worker));
    for (int64_t i = begin; i < end; ++i)
      tokens[static_cast<size_t>(i)] = sampler.draw(logits.row<float>(i), rows[static_cast<size_t>(i)]);
  });
}

}  // namespace shoal::ops::cpu
