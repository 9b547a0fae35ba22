#include "ops/cpu/vector_sampler.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "ops/cpu/vector.h"
#include "ops/sampling_noise.h"

namespace shoal::ops::cpu {
namespace {

constexpr float kLeastTemperature = 1e-5f;  // spec dual_ar 6.1
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int64_t kFew = 32;  // are sorted outright

// A key is larger the better the rank: logits in order, and the lower of two equal logits' ids first.
uint64_t rank_key(float logit, int32_t id) {
  const uint32_t bits = std::bit_cast<uint32_t>(logit + 0.0f);  // -0 equals 0
  const uint32_t ordered = (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
  return uint64_t{ordered} << 32 | ~static_cast<uint32_t>(id);
}

int32_t id_of(uint64_t key) { return static_cast<int32_t>(~static_cast<uint32_t>(key)); }

uint64_t median(uint64_t a, uint64_t b, uint64_t c) {
  return std::max(std::min(a, b), std::min(std::max(a, b), c));
}

}  // namespace

int64_t RowSampler::scratch_bytes(int64_t vocab) {
  return vocab * static_cast<int64_t>(2 * sizeof(float) + sizeof(int32_t) + sizeof(uint64_t));
}

RowSampler::RowSampler(int64_t vocab, void* scratch)
    : kernels_(vector_kernels()),
      vocab_(vocab),
      keys_(static_cast<uint64_t*>(scratch)),
      logits_(reinterpret_cast<float*>(keys_ + vocab)),
      weights_(logits_ + vocab),
      ids_(reinterpret_cast<int32_t*>(weights_ + vocab)) {}

void RowSampler::prepare(const float* logits, const SampleRow& row) {
  if (row.allowed_end < 0) {
    std::copy_n(logits, vocab_, logits_);
  } else {
    std::fill_n(logits_, vocab_, -kInfinity);
    for (int64_t id = row.allowed_begin; id <= row.allowed_end; ++id) logits_[id] = logits[id];
    if (row.allowed_extra >= 0) logits_[row.allowed_extra] = logits[row.allowed_extra];
  }
  for (const int32_t id : row.penalised) {  // from the original value: duplicates change nothing
    if (logits_[id] == -kInfinity) continue;
    logits_[id] = logits[id] < 0 ? logits[id] * row.repetition_penalty : logits[id] / row.repetition_penalty;
  }
}

void RowSampler::find_maximum() {
  bool has_nan = false;
  maximum_ = kernels_.max(logits_, vocab_, &has_nan);
  if (has_nan) fail(ErrorCode::invalid_argument, "sample: the logits contain NaN");
  if (maximum_ == kInfinity) fail(ErrorCode::invalid_argument, "sample: the logits contain infinity");
  if (maximum_ == -kInfinity)
    fail(ErrorCode::invalid_argument, "sample: no id may be drawn: all logits are -inf");
}

int32_t RowSampler::rank_zero() {
  kernels_.select_at_least(logits_, maximum_, ids_, vocab_);
  return ids_[0];
}

void RowSampler::keep(const SampleRow& row) {
  const int64_t most = row.top_k > 0 ? row.top_k : vocab_;
  if (row.top_p <= kGreedyTopP || most == 1) {
    rank_zero();
    kept_ = 1;
    return;
  }
  const double total = kernels_.softmax_weights(logits_, maximum_, weights_, vocab_);
  const bool all = row.top_p >= 1.0f;  // no sum of probabilities exceeds 1
  if (all && most >= vocab_) {
    kept_ = kernels_.select_at_least(logits_, std::numeric_limits<float>::lowest(), ids_, vocab_);
    return;
  }
  keep_within(all ? std::numeric_limits<double>::infinity() : static_cast<double>(row.top_p) * total, most);
}

void RowSampler::keep_within(double budget, int64_t most) {
  int64_t count = 0;
  for (float distance = 2.0f;; distance *= 2) {
    // 2^-36 of the maximum is reached at a distance of 25: what lies farther has no weight.
    const bool last = distance > 32.0f;
    const float least = last ? std::numeric_limits<float>::lowest() : maximum_ - distance;
    count = kernels_.select_at_least(logits_, least, ids_, vocab_);
    if (last || count >= most) break;
    double weight = 0;
    for (int64_t i = 0; i < count; ++i) weight += weights_[ids_[i]];
    if (weight > budget) break;
  }
  for (int64_t i = 0; i < count; ++i) keys_[i] = rank_key(logits_[ids_[i]], ids_[i]);
  const int64_t accepted = select(count, budget, most);
  const uint64_t least = accepted > 0 ? *std::min_element(keys_, keys_ + accepted)
                                      : *std::max_element(keys_, keys_ + count);  // rank 0 is always kept
  kept_ = 0;
  for (int64_t i = 0; i < count; ++i)
    if (rank_key(logits_[ids_[i]], ids_[i]) >= least) ids_[kept_++] = ids_[i];
}

// Moves the largest keys whose weights sum to at most `budget`, at most `most` of them, to the front; returns
// how many they are.
int64_t RowSampler::select(int64_t count, double budget, int64_t most) {
  int64_t accepted = 0, end = count;  // undecided are [accepted, end)
  double weight = 0;
  const auto weight_of = [&](uint64_t key) { return static_cast<double>(weights_[id_of(key)]); };
  const auto accept = [&](int64_t up_to, double added) {
    if (weight + added > budget || up_to > most) return false;
    weight += added;
    accepted = up_to;
    return true;
  };
  while (end - accepted > kFew) {
    const uint64_t pivot = median(keys_[accepted], keys_[accepted + (end - accepted) / 2], keys_[end - 1]);
    uint64_t* const middle =
        std::partition(keys_ + accepted, keys_ + end, [=](uint64_t key) { return key > pivot; });
    double larger = 0;
    for (const uint64_t* key = keys_ + accepted; key < middle; ++key) larger += weight_of(*key);
    if (!accept(middle - keys_, larger)) {
      end = middle - keys_;
      continue;
    }
    std::iter_swap(middle, std::find(middle, keys_ + end, pivot));
    if (!accept(accepted + 1, weight_of(pivot))) return accepted;
  }
  std::sort(keys_ + accepted, keys_ + end, std::greater<>());
  while (accepted < end && accept(accepted + 1, weight_of(keys_[accepted]))) {
  }
  return accepted;
}

// weights_[i] = exp((logit - maximum) / temperature) of the i-th kept id.
void RowSampler::apply_temperature(float temperature) {
  const float divisor = std::max(temperature, kLeastTemperature);
  for (int64_t i = 0; i < kept_; ++i) weights_[i] = (logits_[ids_[i]] - maximum_) / divisor;
  kernels_.exp_nonpositive(weights_, weights_, kept_);
}

int32_t RowSampler::draw(const float* logits, const SampleRow& row) {
  prepare(logits, row);
  find_maximum();
  keep(row);
  if (kept_ == 1) return ids_[0];
  apply_temperature(row.temperature);
  const NoiseStream stream{row.seed, row.frame, row.codebook};
  NoiseBlock noise(stream, static_cast<uint32_t>(ids_[0]) / 4);
  uint32_t block = static_cast<uint32_t>(ids_[0]) / 4;
  float best = -1;
  int32_t token = ids_[0];
  for (int64_t i = 0; i < kept_; ++i) {
    const uint32_t id = static_cast<uint32_t>(ids_[i]);
    if (id / 4 != block) {
      block = id / 4;
      noise = NoiseBlock(stream, block);
    }
    const float score = weights_[i] / noise[id];  // the normaliser would not change the order
    if (score > best) {
      best = score;
      token = ids_[i];
    }
  }
  return token;
}

SamplingDistribution RowSampler::distribution(const float* logits, const SampleRow& row) {
  prepare(logits, row);
  find_maximum();
  keep(row);
  apply_temperature(row.temperature);
  SamplingDistribution result;
  double total = 0;
  for (int64_t i = 0; i < kept_; ++i) total += weights_[i];
  for (int64_t i = 0; i < kept_; ++i) {
    result.ids.push_back(ids_[i]);
    result.probabilities.push_back(static_cast<float>(weights_[i] / total));
  }
  return result;
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
