// Returns the memory of a peak to the system once the server is idle: the allocator itself would keep it, in
// pieces, until the next peak.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

namespace shoal::server {

// The server's activity, as far as memory is concerned.
struct Activity {
  int open = 0;        // requests that speak
  uint64_t ended = 0;  // of all that ever did
};

// Decides when to release memory: nothing is open, nothing has ended since the last check, and something has
// ended since the last release.
class IdleWatch {
 public:
  bool is_time(const Activity& now);

 private:
  uint64_t last_seen_ = 0, last_served_ = 0;
};

// Looks every `period` and calls `give_back` in its own thread. `activity` is called there too.
class IdleMemory {
 public:
  IdleMemory(std::function<Activity()> activity, std::function<void()> give_back,
             std::chrono::milliseconds period);
  ~IdleMemory();
  IdleMemory(const IdleMemory&) = delete;
  IdleMemory& operator=(const IdleMemory&) = delete;

 private:
  void run();

  const std::function<Activity()> activity_;
  const std::function<void()> give_back_;
  const std::chrono::milliseconds period_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool exit_ = false;
  std::thread thread_;
};

// Configures the allocator of the process so that little request memory stays fragmented: one heap for all
// threads, and large blocks of sound and bodies outside it. Call before threads are started.
void keep_heap_whole();
// Returns unused memory of the allocator to the system.
void give_back_free_memory();

}  // namespace shoal::server
