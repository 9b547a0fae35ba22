// Lines to a descriptor whose reader may stop reading.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string_view>

namespace shoal::server {

// One thread writes; each line waits for the reader until close_soon() was called.
class LineWriter {
 public:
  // `fd` stays open and its flags stay as they are: other processes may share it.
  explicit LineWriter(int fd);

  // Whether the whole line was written. False: the descriptor accepts no more, or the patience of
  // close_soon() is over.
  bool write(std::string_view line);

  // From now on a reader that reads nothing for a second, or has not finished after five, is no longer waited
  // for: lines then fail at once. Any thread.
  void close_soon();

 private:
  using Clock = std::chrono::steady_clock;

  bool wait_for_room(Clock::time_point since);
  bool is_patient(Clock::time_point since) const;
  int64_t write_some(std::string_view bytes) const;  // as write(2), but never waits

  const int fd_;
  bool is_pipe_ = false, is_socket_ = false;
  bool gave_up_ = false;
  std::atomic<bool> closing_{false};
  Clock::time_point closing_since_;  // set before closing_
};

}  // namespace shoal::server
