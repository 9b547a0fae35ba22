// A progress line for interactive use.
#pragma once

#include <cstdint>
#include <string>

namespace shoal::cli {

// One line on standard error, redrawn at most ten times a second; nothing at all when standard error is not a
// terminal.
class ProgressBar {
 public:
  explicit ProgressBar(bool enabled);
  ~ProgressBar() { clear(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // fraction in [0, 1]; `figures` follows the bar ("120 frames/s, 25x real time").
  void show(double fraction, const std::string& figures);
  // Removes the line, so that the next output starts on an empty one.
  void clear();

 private:
  bool enabled_;
  bool drawn_ = false;
  double last_s_ = 0;
};

// True when both standard error is a terminal and the user has not asked for quiet.
bool wants_progress(bool quiet);

}  // namespace shoal::cli
