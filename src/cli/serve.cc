// shoal serve: the HTTP server.
#include <CLI/CLI.hpp>
#include <iostream>

#include "cli/cli.h"
#include "cli/engine_settings.h"
#include "cli/server_run.h"

namespace shoal::cli {
namespace {

void serve(const EngineSettings& settings) {
  const ResolvedSettings resolved = settings.resolve();
  if (settings.wants_print())
    std::cout << print_settings(resolved);
  else
    run_server(settings, resolved);
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
