#include "runtime/batching/batch_plan.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

#include "base/error.h"

namespace shoal::runtime {
namespace {

constexpr double kForgetS = 1;  // arrivals fade to 1/e

void check_limits(const BatchLimits& limits) {
  CHECK(limits.max_batch >= 1, "max_batch is ", limits.max_batch);
  CHECK(limits.max_frames >= 1, "max_frames is ", limits.max_frames);
  CHECK(limits.min_wait_us >= 0 && limits.min_wait_us <= limits.max_wait_us, "waits of ", limits.min_wait_us,
        " to ", limits.max_wait_us);
}

std::tuple<int64_t, uint64_t, int64_t> turn_of(const WaitingChunk& chunk) {
  return {chunk.due_us + chunk.turn_us, chunk.request, chunk.index};
}

// How far apart two lengths are, as a factor of at least 1.
double length_ratio(int64_t a, int64_t b) {
  return static_cast<double>(std::max(a, b)) / static_cast<double>(std::max<int64_t>(1, std::min(a, b)));
}

// The order in which chunks are asked to join: `order` starts with the leader.
void sort_by_fit(std::span<const WaitingChunk> waiting, int64_t now_us, std::vector<size_t>& order) {
  const WaitingChunk& leader = waiting[order.front()];
  const auto equally_due = [&](size_t i) {
    return std::abs(waiting[i].due_us - leader.due_us) <= kEquallyDueUs;
  };
  const auto equal_end = std::stable_partition(order.begin() + 1, order.end(), equally_due);
  std::stable_sort(order.begin() + 1, equal_end, [&](size_t a, size_t b) {
    return length_ratio(waiting[a].frames, leader.frames) < length_ratio(waiting[b].frames, leader.frames);
  });
  std::stable_partition(equal_end, order.end(), [&](size_t i) { return waiting[i].due_us <= now_us; });
}

}  // namespace

int64_t adaptive_wait_us(int64_t chunks, const BatchLimits& limits) {
  if (chunks >= limits.max_batch) return 0;
  const auto longest = static_cast<double>(limits.max_wait_us);
  if (limits.arrivals_per_s * longest * 1e-6 < 1) return limits.min_wait_us;
  const double until_full = static_cast<double>(limits.max_batch - chunks) / limits.arrivals_per_s * 1e6;
  return std::max(limits.min_wait_us, static_cast<int64_t>(std::min(until_full, longest)));
}

BatchPlan plan_batch(std::span<const WaitingChunk> waiting, const BatchLimits& limits, int64_t now_us) {
  check_limits(limits);
  if (waiting.empty()) return {};
  std::vector<size_t> order(waiting.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t i) { return turn_of(waiting[i]); });
  sort_by_fit(waiting, now_us, order);
  const WaitingChunk& leader = waiting[order.front()];
  const bool something_is_due = leader.due_us <= now_us + kEquallyDueUs;

  BatchPlan plan;
  int64_t frames = 0;
  bool is_full = false;
  for (const size_t i : order) {
    const WaitingChunk& chunk = waiting[i];
    const bool is_due = chunk.due_us <= std::max(now_us, leader.due_us + kEquallyDueUs);
    const int64_t room =
        is_due || !something_is_due ? limits.max_frames : std::min(limits.spare_frames, limits.max_frames);
    if (!plan.run.empty() && frames + chunk.frames > room) {
      is_full |= frames + chunk.frames > limits.max_frames;
      continue;
    }
    plan.run.push_back(i);
    frames += chunk.frames;
    if (std::ssize(plan.run) == limits.max_batch) break;
  }
  is_full |= std::ssize(plan.run) == limits.max_batch || frames >= limits.max_frames;
  const int64_t oldest_us = std::ranges::min(waiting, {}, &WaitingChunk::arrival_us).arrival_us;
  const int64_t until = oldest_us + adaptive_wait_us(std::ssize(plan.run), limits);
  if (is_full || until <= now_us) return plan;
  return {.run = {}, .wait_until_us = until};
}

void ArrivalRate::add(int64_t now_us) {
  weight_ = per_s(now_us) * kForgetS + 1;
  last_us_ = std::max(last_us_, now_us);
}

double ArrivalRate::per_s(int64_t now_us) const {
  const double age_s = static_cast<double>(std::max<int64_t>(0, now_us - last_us_)) * 1e-6;
  return weight_ * std::exp(-age_s / kForgetS) / kForgetS;
}

}  // namespace shoal::runtime
