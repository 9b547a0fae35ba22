// The answers of a model, all from one thread of their own: no thread of the engine calls Triton.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "triton/asked.h"

namespace shoal::triton {

using Factory = std::unique_ptr<TRITONBACKEND_ResponseFactory, Free<TRITONBACKEND_ResponseFactoryDelete>>;

class Answers {
 public:
  // decoupled, batched: as ModelSettings has them. The engine must outlive it.
  Answers(shoal_engine* engine, bool decoupled, bool batched);
  // Cancels what runs, and answers that.
  ~Answers();
  Answers(const Answers&) = delete;
  Answers& operator=(const Answers&) = delete;

  // Speaks, and answers through the factory from now on. Throws Failure, and then leaves the factory as it
  // is.
  void begin(Factory& factory, Asked asked);

 private:
  struct Stream;

  void run();
  void advance(uint64_t token);
  void look_for_cancelled(bool all);

  shoal_engine* const engine_;
  const bool decoupled_, batched_;
  Mailbox mailbox_;
  std::mutex mutex_;  // of the map; its streams are the thread's
  std::map<uint64_t, std::unique_ptr<Stream>> streams_;
  uint64_t last_token_ = 0;
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

// Ends a request with an error, which is taken.
void answer_with_error(TRITONBACKEND_ResponseFactory* factory, TRITONSERVER_Error* error);

}  // namespace shoal::triton
