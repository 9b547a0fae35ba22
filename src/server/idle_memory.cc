#include "server/idle_memory.h"

#include <malloc.h>
#include <utility>

namespace shoal::server {

bool IdleWatch::is_time(const Activity& now) {
  const bool quiet = now.open == 0 && now.ended == std::exchange(last_seen_, now.ended);
  if (!quiet || now.ended == last_served_) return false;
  last_served_ = now.ended;
  return true;
}

IdleMemory::IdleMemory(std::function<Activity()> activity, std::function<void()> give_back,
                       std::chrono::milliseconds period)
    : activity_(std::move(activity)), give_back_(std::move(give_back)), period_(period) {
  thread_ = std::thread([this] { run(); });
}

IdleMemory::~IdleMemory() {
  {
    const std::lock_guard lock(mutex_);
    exit_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void IdleMemory::run() {
  IdleWatch watch;
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, period_, [this] { return exit_; })) {
    if (watch.is_time(activity_())) give_back_();
  }
}

void keep_heap_whole() {
  mallopt(M_ARENA_MAX, 1);
  mallopt(M_MMAP_THRESHOLD, 256 << 10);  // stays there: by itself it would rise to the largest block seen
}

void give_back_free_memory() { malloc_trim(0); }

}  // namespace shoal::server
