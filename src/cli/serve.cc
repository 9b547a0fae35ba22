// shoal serve: the HTTP server.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdlib>
#include <future>
#include <iostream>
#include <optional>
#include <thread>

#include "base/log.h"
#include "cli/cli.h"
#include "cli/engine_settings.h"
#include "cli/interrupt.h"
#include "server/idle_memory.h"
#include "server/observe/log_sink.h"
#include "server/observe/trace_writer.h"
#include "server/server.h"

namespace shoal::cli {
namespace {

constexpr std::chrono::milliseconds kLook{50};

bool is_under_way(const std::future<void>& work, std::chrono::milliseconds patience) {
  return work.valid() && work.wait_for(patience) != std::future_status::ready;
}

// Throws what loading throws.
void wait_for(const InterruptGuard& interrupt, std::future<void>& loading) {
  while (!interrupt.received()) {
    if (is_under_way(loading, kLook)) continue;
    if (loading.valid())
      loading.get();
    else
      std::this_thread::sleep_for(kLook);
  }
}

void serve(const EngineSettings& settings) {
  const ResolvedSettings resolved = settings.resolve();
  if (settings.wants_print()) {
    std::cout << print_settings(resolved);
    return;
  }
  const InterruptGuard interrupt;
  server::keep_heap_whole();
  std::optional<server::ServerLog> logging(std::in_place, resolved.server);
  for (const std::string& note : resolved.notes) log(LogLevel::warning, note);
  std::optional<server::TraceWriter> trace;
  if (!resolved.server.trace.empty()) trace.emplace(resolved.server.trace);
  server::Server http(resolved.config, resolved.server);
  http.listen();
  std::future<void> loading = std::async(std::launch::async, [&http] { http.load(); });
  wait_for(interrupt, loading);
  log(LogLevel::info, "shutting down: requests inside have ", resolved.server.grace_s, " s to end");
  const bool all_ended = http.stop(std::chrono::seconds(resolved.server.grace_s));
  log(LogLevel::info, all_ended ? "bye" : "bye: some requests had not ended in time");
  if (!is_under_way(loading, std::chrono::milliseconds(0))) return;
  // Loading takes seconds to minutes and cannot be interrupted. It leaves nothing half done but memory.
  logging.reset();
  std::_Exit(EXIT_SUCCESS);
}

}  // namespace

void add_serve(CLI::App& app) {
  auto settings = std::make_shared<EngineSettings>();
  CLI::App& command = *app.add_subcommand(
      "serve", "Serve speech over HTTP (OpenAI, Fish-Speech and Kokoro-FastAPI clients, web page)");
  command.footer(
      "Examples:\n"
      "  shoal serve                                    the built-in voice on http://127.0.0.1:8080\n"
      "  shoal serve --model checkpoints/openaudio-s1-mini --listen 0.0.0.0:8080 --api-key-file keys\n"
      "  shoal serve --models kokoro=checkpoints/Kokoro-82M       two models; a request's model chooses\n"
      "  curl -s http://127.0.0.1:8080/v1/audio/speech -H 'content-type: application/json' \\\n"
      "       -d '{\"model\": \"shoal\", \"input\": \"Hello there.\", \"voice\": \"default\"}' -o hello.mp3");
  settings->add_to(command, EngineSettings::Scope::server);
  command.callback([settings] { serve(*settings); });
}

}  // namespace shoal::cli
