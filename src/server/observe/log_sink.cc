#include "server/observe/log_sink.h"

#include <atomic>
#include <mutex>
#include <spdlog/async_logger.h>
#include <spdlog/details/null_mutex.h>
#include <spdlog/details/thread_pool.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>

#include "base/clock.h"
#include "base/log.h"
#include "server/observe/line_writer.h"
#include "server/observe/log_line.h"

namespace shoal::server {
namespace {

constexpr size_t kQueuedLines = 8192;
constexpr int64_t kLossesEveryUs = 1'000'000;
constexpr const char* kTextPattern = "%Y-%m-%dT%H:%M:%S.%eZ %-7l %v";
constexpr const char* kJsonPattern = R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l",%v})";

// On the pool's one thread.
class LineSink : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  explicit LineSink(std::FILE* out) : writer_(fileno(out)) {}

  void close_soon() { writer_.close_soon(); }
  size_t lost() const { return lost_.load(std::memory_order_relaxed); }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    if (!writer_.write({line.data(), line.size()})) lost_.fetch_add(1, std::memory_order_relaxed);
  }
  void flush_() override {}

 private:
  LineWriter writer_;
  std::atomic<size_t> lost_{0};
};

spdlog::level::level_enum level_of(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warning:
      return spdlog::level::warn;
    case LogLevel::error:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

LogLevel level_named(const std::string& name) {
  for (const LogLevel level : {LogLevel::debug, LogLevel::info, LogLevel::warning})
    if (name_of(level) == name) return level;
  return LogLevel::error;
}

}  // namespace

class ServerLog::Lines {
 public:
  Lines(const ServerConfig& config, std::FILE* out)
      : format_(config.log_format == "json" ? LogFormat::json : LogFormat::text),
        sink_(std::make_shared<LineSink>(out)),
        pool_(std::make_shared<spdlog::details::thread_pool>(kQueuedLines, 1)) {
    logger_ = std::make_shared<spdlog::async_logger>("shoal", sink_, pool_,
                                                     spdlog::async_overflow_policy::overrun_oldest);
    logger_->set_formatter(std::make_unique<spdlog::pattern_formatter>(
        format_ == LogFormat::json ? kJsonPattern : kTextPattern, spdlog::pattern_time_type::utc));
    logger_->set_level(level_of(level_named(config.log_level)));
    logger_->set_error_handler([](const std::string&) {});  // there is nowhere to say it
  }

  // Writes the remaining lines as far as the reader takes them. The last line reports how many were lost, if
  // it can be written.
  ~Lines() {
    const size_t overrun = pool_->overrun_counter();
    sink_->close_soon();
    pool_.reset();
    const size_t news = overrun + sink_->lost() - losses_reported_;
    if (news == 0) return;
    const std::string line = losses_line(news);
    sink_->log({"shoal", spdlog::level::warn, spdlog::string_view_t(line.data(), line.size())});
  }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;

  LogFormat format() const { return format_; }
  bool wants(LogLevel level) const { return logger_->should_log(level_of(level)); }

  void write(LogLevel level, std::string_view message, const std::vector<LogField>& fields) {
    if (!wants(level)) return;
    const std::string line = log_line(format_, message, fields);
    // The lines lost before this one come first: a later report could already count this line itself.
    const int64_t now = now_us();
    int64_t due = losses_due_us_.load(std::memory_order_relaxed);
    if (now >= due && losses_due_us_.compare_exchange_strong(due, now + kLossesEveryUs)) report_losses();
    logger_->log(level_of(level), spdlog::string_view_t(line.data(), line.size()));
  }

  void report_losses() {
    const size_t all = lost();
    const size_t news = all - losses_reported_.exchange(all);
    if (news == 0) return;
    const std::string line = losses_line(news);
    logger_->log(spdlog::level::warn, spdlog::string_view_t(line.data(), line.size()));
  }

  size_t lost() const { return pool_->overrun_counter() + sink_->lost(); }

 private:
  std::string losses_line(size_t lines) const {
    return log_line(format_,
                    concat(lines, " lines of this log were lost: standard error takes them too slowly"), {});
  }

  const LogFormat format_;
  std::atomic<int64_t> losses_due_us_{0};
  std::atomic<size_t> losses_reported_{0};
  std::shared_ptr<LineSink> sink_;
  std::shared_ptr<spdlog::async_logger> logger_;
  std::shared_ptr<spdlog::details::thread_pool> pool_;
};

namespace {

std::mutex current_mutex;
std::shared_ptr<ServerLog::Lines> current;

std::shared_ptr<ServerLog::Lines> current_lines() {
  const std::lock_guard lock(current_mutex);
  return current;
}

void make_current(std::shared_ptr<ServerLog::Lines> lines) {
  const std::lock_guard lock(current_mutex);
  current = std::move(lines);
}

bool is_routine(const Request& request, const RequestRecord& record) {
  return record.status == 200 && (request.route == "/health" || request.route == "/ready" ||
                                  request.route == "/ping" || request.route == "/metrics");
}

// "POST /v1/tts 200"; the path as one word.
std::string request_line(const Request& request, const RequestRecord& record) {
  const std::string status = record.status == 0 ? "left" : std::to_string(record.status);
  return concat(log_word(request.method), " ", log_word(request.path), " ", status);
}

double as_milliseconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

std::vector<LogField> fields_of(const Request& request, const RequestRecord& record, LogFormat format) {
  std::vector<LogField> fields = {{"id", request.id}};
  if (format == LogFormat::json)  // text has them in its message
    fields.insert(fields.end(), {{"method", request.method},
                                 {"path", request.path},
                                 {"status", static_cast<uint64_t>(record.status)}});
  fields.insert(fields.end(), {{"route", request.route},
                               {"whole", record.whole},
                               {"duration_ms", as_milliseconds(record.duration)},
                               {"bytes_received", record.bytes_received},
                               {"bytes_sent", record.bytes_sent},
                               {"client", request.client},
                               {"peer", request.peer}});
  return fields;
}

}  // namespace

ServerLog::ServerLog(const ServerConfig& config, std::FILE* out) try
    : lines_(std::make_shared<Lines>(config, out)) {
  make_current(lines_);
  set_log_sink(
      [lines = lines_](LogLevel level, std::string_view message) { lines->write(level, message, {}); });
} catch (const spdlog::spdlog_ex& error) {
  fail(ErrorCode::internal, "the log cannot be set up: ", error.what());
}

ServerLog::~ServerLog() {
  set_log_sink({});
  make_current(nullptr);
  lines_->report_losses();
}

uint64_t lost_log_lines() noexcept {
  const std::shared_ptr<ServerLog::Lines> lines = current_lines();
  return lines ? lines->lost() : 0;
}

void log_failure(const Request& request, std::string_view why) noexcept {
  try {
    if (const std::shared_ptr<ServerLog::Lines> lines = current_lines())
      lines->write(LogLevel::error, why, {{"id", {request.id}}, {"route", {request.route}}});
    else
      log(LogLevel::error, "request ", request.id, " ", request.route, ": ", why);
  } catch (...) {  // no memory for the line
  }
}

void log_cut_off(const Request& request, const Error& why) noexcept {
  try {
    const bool ours = why.code() == ErrorCode::internal || why.code() == ErrorCode::io;
    const LogLevel level = why.code() == ErrorCode::cancelled ? LogLevel::info
                           : ours                             ? LogLevel::error
                                                              : LogLevel::warning;
    const std::string message = concat("answer cut off: ", why.message());
    if (const std::shared_ptr<ServerLog::Lines> lines = current_lines())
      lines->write(level, message, {{"id", {request.id}}, {"route", {request.route}}});
    else
      log(level, "request ", request.id, " ", request.route, ": ", message);
  } catch (...) {  // no memory for the line
  }
}

void log_request(const Request& request, const RequestRecord& record) noexcept {
  try {
    const std::shared_ptr<ServerLog::Lines> lines = current_lines();
    const LogLevel level = is_routine(request, record) ? LogLevel::debug : LogLevel::info;
    if (!lines || !lines->wants(level)) return;
    lines->write(level, lines->format() == LogFormat::json ? "request" : request_line(request, record),
                 fields_of(request, record, lines->format()));
  } catch (...) {  // no memory for the line
  }
}

}  // namespace shoal::server
