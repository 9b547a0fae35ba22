#include "cli/cli.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <new>
#include <unistd.h>

#include "base/error.h"
#include "base/version.h"
#include "cli/colour.h"
#include "cli/help.h"
#include "cli/interrupt.h"
#include "cli/mistakes.h"
#include "cli/process_start.h"
#include "cli/remarks.h"

namespace shoal::cli {
namespace {

constexpr int kOurFault = 1, kUsersFault = 2;

void print_error(const std::string& message) {
  std::fprintf(stderr, "%s %s\n", in_colour("shoal:", Colour::red, STDERR_FILENO).c_str(), message.c_str());
}

int run_app(CLI::App& app, int argc, char** argv) {
  try {
    std::vector<std::string> arguments = understood_arguments(argc, argv);
    std::ranges::reverse(arguments);  // CLI11 takes them from the end
    app.parse(std::move(arguments));
    return 0;
  } catch (const CLI::Success& help_or_version) {
    return app.exit(help_or_version);
  } catch (const CLI::ParseError& error) {
    print_error(answer_to(error, app));
    return kUsersFault;
  } catch (const Error& error) {
    print_error(error.message());
    if (error.code() == ErrorCode::cancelled) return kInterruptedExitCode;
    return is_callers_fault(error.code()) ? kUsersFault : kOurFault;
  } catch (const std::bad_alloc&) {
    print_error("out of memory");
    return kOurFault;
  } catch (const std::exception& error) {
    print_error(std::string("internal error: ") + error.what());
    return kOurFault;
  }
}

// "shoal 0.1.0" first and alone in its line, for scripts.
std::string version_text() { return "shoal " + version() + "\ncommit " + commit() + "\n" SHOAL_FEATURES; }

}  // namespace

int run(int argc, char** argv) {
  prepare_process();
  CLI::App app(
      "Shoal: text to speech, fast, from one program.\n"
      "  shoal say \"Hello there.\" -o hello.wav      speak with the built-in voice",
      "shoal");
  app.set_version_flag("--version", version_text());
  app.require_subcommand(1);
  set_help_style(app);
  // Once the arguments are understood and before the subcommand acts: help needs no valid environment.
  app.parse_complete_callback([] { show_remarks(wanted_remarks()); });
  add_say(app);
  add_serve(app);
  add_fleet(app);
  add_doctor(app);
  add_ready(app);
  add_voices(app);
  add_cache(app);
  add_inspect(app);
  add_quantize(app);
  add_evaluate(app);
  add_package(app);
  add_normalize(app);
  add_phonemize(app);
  add_bench(app);
  add_completion(app);
  return run_app(app, argc, argv);
}

}  // namespace shoal::cli
