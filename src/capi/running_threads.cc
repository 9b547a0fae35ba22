#include "capi/running_threads.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <pthread.h>
#include <thread>
#include <vector>

namespace shoal::capi {
namespace {

// What exists. Never destroyed: threads may end after the destructors of the process began.
struct Existing {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<const RunningThreads*, std::function<void()>> stops;
  std::atomic<size_t> count{0};  // of them, for a fork, where the mutex may be held
  std::atomic<bool> in_child{false};
};

Existing& existing() {
  static auto* const all = new Existing;
  return *all;
}

void mark_child() {
  if (existing().count > 0) existing().in_child = true;
}

void end_all() {
  if (in_child_of_running()) return;
  Existing& all = existing();
  std::vector<std::function<void()>> stops;
  {
    const std::lock_guard lock(all.mutex);
    for (const auto& [threads, stop] : all.stops)
      if (stop) stops.push_back(stop);
  }
  for (const auto& stop : stops) stop();
  // Threads of ours end by themselves now. An engine that another thread is just starting need not be gone.
  const auto ends_by_itself = [](const auto& entry) { return !entry.second; };
  std::unique_lock lock(all.mutex);
  all.changed.wait(lock, [&] { return std::ranges::none_of(all.stops, ends_by_itself); });
}

}  // namespace

bool in_child_of_running() { return existing().in_child.load(std::memory_order_relaxed); }

RunningThreads::RunningThreads(std::function<void()> stop) {
  static std::once_flag once;
  std::call_once(once, [] {
    pthread_atfork(nullptr, nullptr, mark_child);
    std::atexit(end_all);
  });
  Existing& all = existing();
  const std::lock_guard lock(all.mutex);
  all.stops.emplace(this, std::move(stop));
  all.count = all.stops.size();
}

RunningThreads::~RunningThreads() {
  Existing& all = existing();
  const std::lock_guard lock(all.mutex);
  all.stops.erase(this);
  all.count = all.stops.size();
  all.changed.notify_all();
}

void start_thread(std::function<void()> work) {
  std::thread([work = std::move(work), running = std::make_unique<RunningThreads>()]() mutable {
    work();
    work = nullptr;  // what it holds ends while this is still waited for
    running.reset();
  }).detach();
}

}  // namespace shoal::capi
