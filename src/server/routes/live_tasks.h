// The coroutines of an open conversation: its reader, and those beside it.
#pragma once

#include <functional>

#include "server/http/task.h"
#include "server/routes/signal.h"

namespace shoal::server {

// A member of a session, which alone calls it, on the connection's thread. run() returns when no coroutine is
// left, so what they refer to may end in any order after it. Only with its io_context may a session end
// earlier: that destroys the coroutines, and resumes none.
class LiveTasks {
 public:
  explicit LiveTasks(Executor executor) : executor_(executor), tick_(executor), ended_(executor) {}

  // The session, once. Awaits `reader`; then over() is true, calls `cancel`, which makes what is spoken end
  // soon, and waits for every coroutine that was spawned. Throws what `reader` threw.
  Task<> run(Task<> reader, std::function<void()> cancel);
  // Another coroutine. What it throws is dropped: a broken connection also ends the reader, which reports it,
  // and nothing else is thrown.
  void spawn(Task<> task);
  // Returns after one of them has ended.
  Task<> wait_for_an_end() { return ended_.wait(); }

  // For the one coroutine that watches the clock: waits half a second, or for hurry(). False: over(). Not
  // for the condition of a loop, with which g++ 12 drops what follows the loop.
  Task<bool> tick();
  void hurry() { tick_.notify(); }
  bool over() const { return over_; }

 private:
  const Executor executor_;
  Signal tick_, ended_;
  int open_ = 0;
  bool over_ = false;
};

// Whether `task` ended without an exception: after either there may be more to wait for.
Task<bool> goes_well(Task<> task);

}  // namespace shoal::server
