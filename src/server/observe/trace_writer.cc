#include "server/observe/trace_writer.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/printable.h"
#include "server/observe/trace_event_json.h"

namespace shoal::server {
namespace {

constexpr size_t kWorthWriting = 64 << 10, kMostWaiting = 16 << 20;
constexpr size_t kMostEventBytes = 2048;  // with the name of its thread
constexpr std::chrono::seconds kLongestWait{1};
constexpr std::string_view kEnd = "\n]\n";

int open_file(const std::string& path) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0)
    fail(ErrorCode::io, "trace: ", printable(path, 4096), " cannot be written: ", std::strerror(errno));
  return file;
}

// Everything, or false with errno.
bool write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = write(file, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(wrote));
  }
  return true;
}

}  // namespace

TraceWriter::TraceWriter(const std::string& path, int64_t most_bytes)
    : path_(path), most_bytes_(most_bytes), origin_us_(now_us()), file_(open_file(path)) {
  waiting_ = trace_head();
  thread_ = std::thread([this] { run(); });
  set_trace_sink([this](const TraceEvent& event) { record(event); });
}

TraceWriter::~TraceWriter() {
  set_trace_sink({});
  {
    const std::lock_guard lock(mutex_);
    exit_ = true;
  }
  changed_.notify_all();
  thread_.join();
  close(file_);
}

void TraceWriter::record(const TraceEvent& event) {
  bool worth_writing = false;
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() > kMostWaiting) {
      ++dropped_;
      return;
    }
    waiting_.reserve(waiting_.size() + kMostEventBytes);  // no memory: no event, rather than half of one
    const bool is_new =
        event.thread != 0 && std::ranges::find(named_threads_, event.thread) == named_threads_.end();
    if (is_new) {
      named_threads_.push_back(event.thread);
      append_thread_name(waiting_, event.thread, event.name);
    }
    append_event(waiting_, event, origin_us_);
    worth_writing = waiting_.size() >= kWorthWriting;
  }
  if (worth_writing) changed_.notify_one();
}

void TraceWriter::run() {
  std::string events;
  bool exit = false, recording = true;
  while (!exit) {
    int64_t dropped = 0;
    {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, kLongestWait, [this] { return exit_ || waiting_.size() >= kWorthWriting; });
      exit = exit_;
      events.clear();
      events.swap(waiting_);
      std::swap(dropped, dropped_);
    }
    if (dropped > 0)
      log(LogLevel::warning, "trace: ", dropped, " events were lost: ", printable(path_),
          " takes them too slowly");
    if (recording && !write_out(events)) {
      recording = false;
      set_trace_sink({});
    }
  }
  if (recording) finish();
}

bool TraceWriter::write_out(std::string& events) {
  const auto room = static_cast<size_t>(most_bytes_ - written_bytes_) - kEnd.size();
  const bool full = events.size() > room;
  if (full) events.resize(std::min(events.rfind(kEventBreak, room), events.size()));  // whole events
  if (!write_all(file_, events)) {
    log(LogLevel::error, "trace: ", printable(path_), " cannot be written any more: ", std::strerror(errno));
    // Back to the end of an event, and to JSON where the disk is not the matter.
    if (ftruncate(file_, written_bytes_) == 0 && lseek(file_, written_bytes_, SEEK_SET) >= 0) finish();
    return false;
  }
  written_bytes_ += static_cast<int64_t>(events.size());
  if (!full) return true;
  finish();
  log(LogLevel::warning, "trace: ", printable(path_), " has ", written_bytes_ >> 20,
      " MiB, the recording ends");
  return false;
}

void TraceWriter::finish() { (void)!write_all(file_, kEnd); }

}  // namespace shoal::server
