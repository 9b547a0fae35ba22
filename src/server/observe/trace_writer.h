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

// Chrome's trace format: a JSON array of events, one per line. While it is being written, the end of the
// array and at most a second of events are missing; both viewers accept that, so a killed program leaves a
// readable file. Its own thread writes, so that a slow disk delays nothing; while 16 MiB of events wait,
// further ones are dropped and counted in the log.
class TraceWriter {
 public:
  static constexpr int64_t kMostBytes = int64_t{512} << 20;

  // Creates or empties the file and becomes the trace sink. The recording ends before the file exceeds
  // `most_bytes`, or when writing fails; the log says so. Throws Error(io) with the path.
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
  std::string waiting_;  // whole events, each after a comma
  std::vector<uint32_t> named_threads_;
  int64_t dropped_ = 0;
  bool exit_ = false;

  // Of the writing thread.
  int64_t written_bytes_ = 0;
  std::thread thread_;  // last: runs on all of the above
};

}  // namespace shoal::server
