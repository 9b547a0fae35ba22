#include "base/thread_team.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <limits>
#include <sched.h>
#include <utility>

#include "base/error.h"

namespace shoal {
namespace {

// Longer than the gaps between the regions of one decode step, shorter than a time slice. One pause takes
// about 140 cycles on Intel since Skylake and 40 to 65 on AMD Zen, so that at 3 GHz this is about 190 us on
// the former and 50 to 90 us on the latter.
constexpr int kSpins = 4000;

constexpr size_t kMostCpus = size_t{1} << 20;

inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// CPUs of the affinity mask.
int allowed_cpus() {
  // The kernel refuses a set smaller than its own, which on large machines exceeds the 1024 of cpu_set_t.
  for (size_t cpus = CPU_SETSIZE; cpus <= kMostCpus; cpus *= 2) {
    std::vector<cpu_set_t> sets(cpus / CPU_SETSIZE);
    const size_t bytes = sets.size() * sizeof(cpu_set_t);
    if (sched_getaffinity(0, bytes, sets.data()) == 0) return std::max(1, CPU_COUNT_S(bytes, sets.data()));
    if (errno != EINVAL) break;
  }
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

// CPUs that the control group may keep busy, rounded up: a container with two CPUs' worth of time on a
// machine of 64 would otherwise be throttled while 64 threads wait for each other.
int quota_cpus() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  double quota = 0, period = 0;
  if (!(file >> quota >> period) || quota <= 0 || period <= 0) return std::numeric_limits<int>::max();
  return std::max(1, static_cast<int>(std::min(1e6, std::ceil(quota / period))));
}

}  // namespace

int ThreadTeam::available_cpus() { return std::min(allowed_cpus(), quota_cpus()); }

ThreadTeam::ThreadTeam(int threads) {
  CHECK(threads >= 0 && threads <= 1024, "threads ", threads);
  if (threads == 0) threads = available_cpus();
  try {
    workers_.reserve(static_cast<size_t>(threads) - 1);
    for (int worker = 1; worker < threads; ++worker)
      workers_.emplace_back([this, worker] { work(worker, 0); });
  } catch (const std::exception& error) {
    const int started = size();
    stop();
    fail(ErrorCode::resource_exhausted, "threads: expected to run ", threads, ", the system allowed ",
         started, " (", error.what(), ")");
  }
}

ThreadTeam::~ThreadTeam() { stop(); }

void ThreadTeam::stop() noexcept {
  stopping_.store(true, std::memory_order_relaxed);
  region_.fetch_add(1, std::memory_order_seq_cst);
  region_.notify_all();
  for (std::thread& thread : workers_) thread.join();
}

void ThreadTeam::call_guarded(int worker) {
  try {
    (*body_.load(std::memory_order_relaxed))(worker);
  } catch (...) {
    const std::lock_guard lock(error_mutex_);
    if (!error_) error_ = std::current_exception();
  }
}

void ThreadTeam::work(int worker, uint32_t seen) {
  while (true) {
    for (int spin = 0; spin < kSpins && region_.load(std::memory_order_acquire) == seen; ++spin) pause();
    while (region_.load(std::memory_order_seq_cst) == seen) {
      parked_.fetch_add(1, std::memory_order_seq_cst);
      region_.wait(seen, std::memory_order_seq_cst);
      parked_.fetch_sub(1, std::memory_order_seq_cst);
    }
    seen = region_.load(std::memory_order_acquire);
    if (stopping_.load(std::memory_order_relaxed)) return;
    call_guarded(worker);
    pending_.fetch_sub(1, std::memory_order_release);
  }
}

void ThreadTeam::run(FunctionRef<void(int worker)> body) {
  if (idle_size_ > 0) return;
  if (workers_.empty()) return body(0);
  const FunctionRef<void(int)>* idle = nullptr;
  CHECK(body_.compare_exchange_strong(idle, &body, std::memory_order_acquire),
        "ThreadTeam::run while a region of this team runs");
  pending_.store(static_cast<int>(workers_.size()), std::memory_order_relaxed);
  region_.fetch_add(1, std::memory_order_seq_cst);
  if (parked_.load(std::memory_order_seq_cst) > 0) region_.notify_all();
  call_guarded(0);
  for (int spin = 0; pending_.load(std::memory_order_acquire) > 0; ++spin) {
    // With the cores contended the straggler needs this one.
    if (spin < kSpins)
      pause();
    else
      sched_yield();
  }
  const std::exception_ptr error = std::exchange(error_, nullptr);
  body_.store(nullptr, std::memory_order_release);
  if (error) std::rethrow_exception(error);
}

void ThreadTeam::parallel_for(int64_t count, int64_t grain, FunctionRef<void(int64_t, int64_t, int)> body) {
  CHECK(grain > 0, "grain ", grain);
  if (count <= 0 || idle_size_ > 0) return;
  if (count <= grain || workers_.empty()) {
    for (int64_t begin = 0; begin < count; begin += grain) body(begin, std::min(count, begin + grain), 0);
    return;
  }
  std::atomic<int64_t> next{0};
  run([&](int worker) {
    while (true) {
      const int64_t begin = next.fetch_add(grain, std::memory_order_relaxed);
      if (begin >= count) return;
      body(begin, std::min(count, begin + grain), worker);
    }
  });
}

}  // namespace shoal
