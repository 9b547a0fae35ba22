// Which threads of ours run: a fork copies none of them, and the end of the process waits for them.
#pragma once

#include <functional>

namespace shoal::capi {

// True in a process that was forked while a RunningThreads existed: its threads, and the locks that they
// held, are gone.
bool in_child_of_running();

// Exists while threads of an engine, or one of ours, may run. When the process ends by exit() or by returning
// from main, `stop` is called, which throws nothing; without one the threads are waited for.
class RunningThreads {
 public:
  explicit RunningThreads(std::function<void()> stop = {});
  ~RunningThreads();
  RunningThreads(const RunningThreads&) = delete;
  RunningThreads& operator=(const RunningThreads&) = delete;
};

// Does `work`, which throws nothing, on a thread of its own. Throws std::system_error if there is none.
void start_thread(std::function<void()> work);

}  // namespace shoal::capi
