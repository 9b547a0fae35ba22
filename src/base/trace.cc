#include "base/trace.h"

#include <algorithm>
#include <mutex>

namespace shoal {
namespace {

std::mutex trace_mutex;
TraceSink trace_sink;

uint32_t this_thread() {
  static std::atomic<uint32_t> threads{0};
  thread_local const uint32_t number = ++threads;
  return number;
}

void record(const TraceEvent& event) noexcept {
  try {
    const std::lock_guard lock(trace_mutex);
    if (trace_sink) trace_sink(event);
  } catch (...) {  // the sink's own failure is not ours to report
  }
}

}  // namespace

namespace detail {
std::atomic<bool> tracing{false};
}  // namespace detail

void set_trace_sink(TraceSink sink) {
  const std::lock_guard lock(trace_mutex);
  trace_sink = std::move(sink);
  detail::tracing.store(static_cast<bool>(trace_sink), std::memory_order_relaxed);
}

void trace_past(const char* name, uint64_t track, int64_t start_us, int64_t end_us,
                std::initializer_list<TraceNumber> numbers) noexcept {
  if (!is_tracing()) return;
  record({.name = name,
          .start_us = start_us,
          .end_us = end_us,
          .thread = 0,
          .track = track,
          .numbers = {numbers.begin(), numbers.size()}});
}

void TraceSpan::begin(const char* name, std::initializer_list<TraceNumber> numbers) noexcept {
  name_ = name;
  keep(numbers);
  start_us_ = now_us();
}

void TraceSpan::keep(std::initializer_list<TraceNumber> numbers) noexcept {
  const size_t count = std::min(numbers.size(), numbers_.size() - count_);
  std::copy_n(numbers.begin(), count, numbers_.begin() + static_cast<std::ptrdiff_t>(count_));
  count_ += count;
}

void TraceSpan::end() noexcept {
  record({.name = name_,
          .start_us = start_us_,
          .end_us = now_us(),
          .thread = this_thread(),
          .track = 0,
          .numbers = {numbers_.data(), count_}});
}

}  // namespace shoal
