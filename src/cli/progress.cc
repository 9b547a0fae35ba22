#include "cli/progress.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <unistd.h>

namespace shoal::cli {
namespace {

constexpr int kWidth = 30;
constexpr double kRedrawEvery_s = 0.1;

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

ProgressBar::ProgressBar(bool enabled) : enabled_(enabled) {}

void ProgressBar::show(double fraction, const std::string& figures) {
  const double now_s = seconds_now();
  if (!enabled_ || (drawn_ && now_s - last_s_ < kRedrawEvery_s)) return;
  const int filled = static_cast<int>(kWidth * std::clamp(fraction, 0.0, 1.0));
  const std::string bar =
      std::string(static_cast<size_t>(filled), '#') + std::string(static_cast<size_t>(kWidth - filled), '.');
  std::fprintf(stderr, "\r\033[K[%s] %s", bar.c_str(), figures.c_str());
  std::fflush(stderr);
  drawn_ = true;
  last_s_ = now_s;
}

void ProgressBar::clear() {
  if (!drawn_) return;
  std::fputs("\r\033[K", stderr);
  drawn_ = false;
}

bool wants_progress(bool quiet) { return !quiet && isatty(STDERR_FILENO) == 1; }

}  // namespace shoal::cli
