#include "cli/server_run.h"

#include <chrono>
#include <cstdlib>
#include <future>
#include <optional>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "cli/interrupt.h"
#include "server/idle_memory.h"
#include "server/observe/log_sink.h"
#include "server/observe/trace_writer.h"
#include "server/server.h"
#include "settings/table.h"

namespace shoal::cli {
namespace {

constexpr std::chrono::milliseconds kLook{50};

bool is_under_way(const std::future<void>& work, std::chrono::milliseconds patience) {
  return work.valid() && work.wait_for(patience) != std::future_status::ready;
}

// Settings of the server, which only a new start changes, and the folders that stay.
void warn_of_what_stays(const ResolvedSettings& before, const ResolvedSettings& now) {
  for (const settings::Row& row : settings::rows()) {
    if (!row.of_server() && row.key != "references_dir") continue;
    if (settings::get(row, {before.config, before.server}) != settings::get(row, {now.config, now.server}))
      log(LogLevel::warning, "reload: ", row.key, " has changed; that needs a restart");
  }
}

class ServerRun {
 public:
  ServerRun(const EngineSettings& settings, const ResolvedSettings& resolved)
      : settings_(settings), started_with_(resolved), http_(resolved.config, resolved.server) {}

  // Until a signal ends it. Throws what loading throws.
  void serve() {
    http_.listen();
    work_ = std::async(std::launch::async, [this] { http_.load(); });
    while (!is_over()) {
      if (is_under_way(work_, kLook)) continue;
      if (work_.valid())
        work_.get();
      else
        look_for_hangup();
    }
  }

  // Whether no model is being loaded any more.
  bool stop() {
    const int grace_s = started_with_.server.grace_s;
    log(LogLevel::info, "shutting down: requests inside have ", grace_s, " s to end");
    const bool all_ended = http_.stop(std::chrono::seconds(grace_s));
    log(LogLevel::info, all_ended ? "bye" : "bye: some requests had not ended in time");
    return !is_under_way(work_, std::chrono::milliseconds(0)) && !http_.is_loading();
  }

 private:
  bool is_over() {
    if (interrupt_.received()) return true;
    // Whether the terminal is gone. A SIGHUP to a program that never had one asks for a reload.
    hung_up_ = interrupt_.take_hangup() || hung_up_;
    return hung_up_ && had_terminal_ && !has_terminal();
  }

  void look_for_hangup() {
    std::this_thread::sleep_for(kLook);
    if (is_over() || !std::exchange(hung_up_, false)) return;
    log(LogLevel::info, "SIGHUP: reloading");
    work_ = std::async(std::launch::async, [this] { reload(); });
  }

  void reload() {
    if (!settings_.has_file()) {
      http_.reload();
      return;
    }
    try {
      const ResolvedSettings now = settings_.resolve();
      warn_of_what_stays(started_with_, now);
      http_.reload(&now.config);
    } catch (const Error& error) {
      log(LogLevel::error, "reload: ", error.message(), "; the server goes on as it was");
    }
  }

  const InterruptGuard interrupt_{Hangup::is_remembered};
  const bool had_terminal_ = has_terminal();
  bool hung_up_ = false;  // and not acted on yet
  const EngineSettings& settings_;
  const ResolvedSettings& started_with_;
  server::Server http_;
  std::future<void> work_;  // loading or reloading; its end waits for it
};

}  // namespace

void run_server(const EngineSettings& settings, const ResolvedSettings& resolved) {
  server::keep_heap_whole();
  std::optional<server::ServerLog> logging(std::in_place, resolved.server);
  for (const std::string& note : resolved.notes) log(LogLevel::warning, note);
  std::optional<server::TraceWriter> trace;
  if (!resolved.server.trace.empty()) trace.emplace(resolved.server.trace);
  ServerRun run(settings, resolved);
  run.serve();
  if (run.stop()) return;
  // Loading takes seconds to minutes and cannot be interrupted. If the process exits meanwhile, only memory
  // is lost.
  logging.reset();
  std::_Exit(EXIT_SUCCESS);
}

}  // namespace shoal::cli
