// Records what base/trace.h sees into a file for Perfetto (ui.perfetto.dev) or chrome://tracing.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/trace.h"

namespace shoal::server {

// Chrome's trace format: a JSON array of events, one a line. While it is being written the end of the array
// is missing and at most a second of events, which both viewers put up with: a killed program leaves a
// readable file. A thread of its own writes, so that a slow disk holds up nobody; events are dropped, and
// counted in the log, while 16 MiB of them wait.
class TraceWriter {
 public:
  static constexpr int64_t kMostBytes = int64_t{512} << 20;

  // Empties or makes the file and becomes the trace sink. Before the file has more than `most_bytes` the
  // recording ends, as it does when it cannot be written; the log says so. Throws Error(io) with the path.
  explicit TraceWriter(const std::string& path, int64_t most_bytes = kMostBytes);
  ~TraceWriter();  // the file is a whole JSON document then
  TraceWriter(const TraceWriter&) = delete;
  TraceWriter& operator=(const TraceWriter&) = delete;

 private:
  void record(const TraceEvent& event);
  void run();
  // False when the recording has to end.
  bool write_out(std::string& events);
  void finish();

  const std::string path_;
  const int64_t most_bytes_, origin_us_;
  int file_ = -1;

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::string waiting_;  // whole events, each behind a comma
  std::vector<uint32_t> named_threads_;
  int64_t dropped_ = 0;
  bool exit_ = false;

  // Of the writing thread.
  int64_t written_bytes_ = 0;
  std::thread thread_;  // last: runs on all of the above
};

}  // namespace shoal::server
