// A batch in the engine, and its results on the thread of a connection.
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "server/routes/answer_memory.h"
#include "server/routes/batch_request.h"

namespace shoal::server {

struct BatchAnswer {
  size_t index = 0;
  bool success = false;
  std::string json;     // the result as an object of JSON, its sound in base64
  AnswerMemory memory;  // of `json`, until it has been sent
};

// Lives on the connection's thread. Sound in progress and waiting answers count against the memory of whole
// answers; an item for which there is no memory fails alone. A client that does not read its results delays
// only its own batch.
class BatchRun {
 public:
  // Starts. Items that have not ended are cancelled when `gone` stops or after batch.timeout, which counts
  // only time in next(). `from` must outlive it.
  BatchRun(Executor executor, Services& services, const Request& from, BatchRequest batch,
           const std::stop_token& gone);
  // Cancels and waits. Call next() to the end first to avoid the wait.
  ~BatchRun();
  BatchRun(const BatchRun&) = delete;
  BatchRun& operator=(const BatchRun&) = delete;

  // The next result, as batch.in_order says; absent: that was the last.
  Task<std::optional<BatchAnswer>> next();
  void cancel() { stop_.request_stop(); }

 private:
  struct Arrivals;

  size_t left_;                                                // items that next() has not returned
  std::chrono::steady_clock::time_point deadline_, returned_;  // next() last did
  std::shared_ptr<Arrivals> arrivals_;
  std::stop_source stop_;
  std::stop_callback<std::function<void()>> when_gone_;
  std::future<std::vector<BatchResult>> batch_;  // without its samples, which the answers have
};

}  // namespace shoal::server
