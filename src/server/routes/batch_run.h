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

// Lives on the connection's thread. Sound that is being made, and answers that wait, are counted as answers
// that are sent whole; an item for which there is no more memory fails alone. A client who does not take what
// there is holds up his own batch alone.
class BatchRun {
 public:
  // Starts. What has not ended when `gone` stops, or after batch.timeout, of which only time in next()
  // counts, is cancelled. `from` outlives it.
  BatchRun(Executor executor, Services& services, const Request& from, BatchRequest batch,
           const std::stop_token& gone);
  // Cancels and waits. Call next() to the end first, so that there is nothing to wait for.
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
