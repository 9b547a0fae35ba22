// Records what happens when, for a timeline. Without a sink nothing is recorded, and a span costs one atomic
// load.
#pragma once

#include <array>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>

#include "base/clock.h"

namespace shoal {

// A figure beside a span; not negative.
struct TraceNumber {
  const char* name;
  uint64_t value;

  TraceNumber() = default;  // empty: a span that is not recorded must cost nothing
  TraceNumber(const char* name_, std::integral auto value_)
      : name(name_), value(static_cast<uint64_t>(value_)) {}
};

// Something that took from start_us to end_us (base/clock.h). Names must outlive the program's traces
// (literals).
struct TraceEvent {
  const char* name;
  int64_t start_us, end_us;
  uint32_t thread;     // numbered from 1 in order of appearance; 0: not bound to a thread, may overlap others
  uint64_t track = 0;  // tells apart overlapping spans that are not bound to a thread
  std::span<const TraceNumber> numbers;
};

// Called from any thread, one call at a time; it must not block. An empty function ends the recording, and
// returns after a call in progress has.
using TraceSink = std::function<void(const TraceEvent& event)>;
void set_trace_sink(TraceSink sink);

namespace detail {
extern std::atomic<bool> tracing;
}  // namespace detail
inline bool is_tracing() noexcept { return detail::tracing.load(std::memory_order_relaxed); }

// Records something that is already over and not bound to a thread. Never throws.
void trace_past(const char* name, uint64_t track, int64_t start_us, int64_t end_us,
                std::initializer_list<TraceNumber> numbers) noexcept;

// From its construction to its end, on this thread.
class TraceSpan {
 public:
  explicit TraceSpan(const char* name, std::initializer_list<TraceNumber> numbers = {}) noexcept {
    if (is_tracing()) [[unlikely]]
      begin(name, numbers);
  }
  ~TraceSpan() {
    if (name_) [[unlikely]]
      end();
  }
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

  // Figures that are known later. The first six of all are kept.
  void add(std::initializer_list<TraceNumber> numbers) noexcept {
    if (name_) [[unlikely]]
      keep(numbers);
  }

 private:
  void begin(const char* name, std::initializer_list<TraceNumber> numbers) noexcept;
  void keep(std::initializer_list<TraceNumber> numbers) noexcept;
  void end() noexcept;

  const char* name_ = nullptr;  // none: nothing is recorded
  int64_t start_us_ = 0;
  size_t count_ = 0;
  std::array<TraceNumber, 6> numbers_;
};

}  // namespace shoal
