// A fixed team of threads that runs one parallel region after another without a wake-up between them.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "base/function_ref.h"

namespace shoal {

// The caller is worker 0, so a team of one never switches threads. Between regions the other workers spin for
// a few thousand pauses and then park (futex), so a decode step of hundreds of regions pays no wake-ups while
// an idle team costs nothing. One region at a time: a region must not start another on its own team, and
// calls from two threads are serialised by the caller; breaking this throws Error(internal).
class ThreadTeam {
 public:
  // threads >= 1; 0 means the number of CPUs this process may run on. Throws Error(resource_exhausted) when
  // the system refuses a thread.
  explicit ThreadTeam(int threads = 0);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  // Has that size and runs nothing: for plans of what work would take.
  static ThreadTeam idle(int size) { return ThreadTeam(Idle{size}); }

  int size() const { return idle_size_ > 0 ? idle_size_ : static_cast<int>(workers_.size()) + 1; }

  // Calls body(worker) once on every worker, 0 <= worker < size(), and returns when all are done.
  // The first exception of any worker is rethrown here.
  void run(FunctionRef<void(int worker)> body);

  // Calls body(begin, end, worker) over pieces of [0, count) of `grain` items (the last may be shorter). Any
  // free worker takes the next piece, so a worker that lost its core does not delay the rest. Results must
  // not depend on which worker computes a piece.
  void parallel_for(int64_t count, int64_t grain,
                    FunctionRef<void(int64_t begin, int64_t end, int worker)> body);

  // CPUs this process may use: its affinity mask, and the control group's quota of time.
  static int available_cpus();

 private:
  struct Idle {
    int size;
  };
  explicit ThreadTeam(Idle idle) : idle_size_(idle.size) {}
  void work(int worker, uint32_t seen);
  void call_guarded(int worker);
  void stop() noexcept;

  int idle_size_ = 0;  // of an idle team
  std::vector<std::thread> workers_;
  std::atomic<const FunctionRef<void(int)>*> body_{nullptr};  // set while a region runs
  std::atomic<uint32_t> region_{0};                           // bumped to start a region; workers wait on it
  std::atomic<int> pending_{0};                               // workers that have not finished the region
  std::atomic<int> parked_{0};                                // workers asleep on region_
  std::atomic<bool> stopping_{false};
  std::mutex error_mutex_;
  std::exception_ptr error_;
};

}  // namespace shoal
