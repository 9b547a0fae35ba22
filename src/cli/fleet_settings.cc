#include "cli/fleet_settings.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/printable.h"
#include "cli/engine_settings.h"
#include "cli/mistakes.h"

namespace shoal::cli {
namespace {

// What the fleet uses itself, and workers have none of.
constexpr std::array<std::string_view, 3> kOfFleet = {"operator_listen", "tls_certificate", "tls_key"};
// What each worker has of its own, or cannot have.
constexpr std::array<std::string_view, 4> kOfWorkers = {"listen", "device", "trace", "wyoming"};
// What the fleet asks its workers with, tells them by, or promises for all of them.
constexpr std::array<std::string_view, 6> kOfAll = {"api_key",        "api_key_file", "admin_key",
                                                    "admin_key_file", "grace_s",      "references_dir"};
constexpr const char* kWhose = "--fleet-worker";

// The options of `shoal serve`, parsed.
class ServeOptions {
 public:
  explicit ServeOptions(std::vector<std::string> options) {
    settings_.add_to(app_, EngineSettings::Scope::server);
    std::ranges::reverse(options);  // CLI11 takes them from the end
    try {
      app_.parse(std::move(options));
    } catch (const CLI::ParseError& error) {
      fail(ErrorCode::invalid_argument, answer_to(error, app_));
    }
  }
  const CLI::App& app() const { return app_; }
  const EngineSettings& settings() const { return settings_; }

 private:
  CLI::App app_{"", "shoal serve"};
  EngineSettings settings_;
};

std::string flag_named(std::string key) {
  std::ranges::replace(key, '_', '-');
  return "--" + key;
}

void check_change(const std::string& key) {
  const auto setting = std::ranges::find(all_settings(), key, &Setting::key);
  if (setting == all_settings().end())
    fail(ErrorCode::invalid_argument, printable(key), ": there is no such setting");
  if (std::ranges::count(kOfFleet, key) + std::ranges::count(kOfWorkers, key) > 0)
    fail(ErrorCode::invalid_argument, key, ": is the fleet's own; it needs a new start of the fleet");
}

void check_section(const ResolvedSettings::OfWorker& entry, const std::vector<std::string>& workers) {
  if (std::ranges::count(workers, entry.worker) == 0)
    fail(ErrorCode::invalid_argument, entry.source, ": [workers.", printable(entry.worker),
         "]: there is no such worker; the fleet has ", workers.size(), workers.empty() ? "" : ", from w1 on");
  const bool is_own = std::ranges::count(kOfFleet, entry.key) + std::ranges::count(kOfAll, entry.key) > 0;
  if (is_own || (std::ranges::count(kOfWorkers, entry.key) > 0 && entry.key != "trace"))
    fail(ErrorCode::invalid_argument, entry.source, ": ", entry.key, ": cannot stand in [workers.",
         entry.worker, "]: it is the fleet's own, or the same for all workers");
}

}  // namespace

namespace {

// A section counts more than the share that the fleet would give.
void check_share(const ResolvedSettings& own, const std::string& worker) {
  const auto is_it = [&](const ResolvedSettings::OfWorker& entry) {
    return entry.worker == worker && entry.key == "kv_memory_mb";
  };
  if (own.config.kv_memory_mb == 0 && std::ranges::any_of(own.of_workers, is_it))
    fail(ErrorCode::invalid_argument, "workers.", worker,
         ".kv_memory_mb: 0 leaves the size to the fleet; expected a size, or no such line");
}

}  // namespace

std::vector<std::string> given_options(const CLI::App& command, const std::vector<std::string>& without) {
  std::vector<std::string> options;
  for (const CLI::Option* option : command.get_options()) {
    if (option->count() == 0 || option->get_lnames().empty()) continue;
    const std::string& name = option->get_lnames().front();
    if (std::ranges::count(without, name) > 0) continue;
    for (const std::string& value : option->results()) options.push_back("--" + name + "=" + value);
  }
  return options;
}

WorkerSettings::WorkerSettings(std::vector<std::string> options, std::vector<std::string> workers)
    : workers_(std::move(workers)) {
  const ServeOptions serve(std::move(options));
  for (const char* of_a_worker : {"--listen", "--host", "--port", "--device", kWhose})
    if (serve.app().get_option(of_a_worker)->count() > 0)
      fail(ErrorCode::invalid_argument, of_a_worker + 2, ": the fleet gives each worker its own");
  if (serve.settings().wants_print())
    fail(ErrorCode::invalid_argument,
         "print_config: `shoal serve` prints the settings, `shoal fleet` does not");
  given_ = given_options(serve.app());
  resolve();
}

ResolvedSettings WorkerSettings::resolve(const fleet::Settings& changes) const {
  ResolvedSettings resolved = ServeOptions(options_with(changes)).settings().resolve();
  if (!resolved.server.trace.empty())
    fail(ErrorCode::invalid_argument,
         "trace: every worker would write the same file; expected none in a fleet");
  if (!resolved.server.wyoming.empty())
    fail(ErrorCode::invalid_argument,
         "wyoming: every worker would listen at the same address; expected none in a fleet (run a `shoal "
         "serve` "
         "of its own for Home Assistant)");
  if (!resolved.server.models_root.empty())
    fail(ErrorCode::invalid_argument,
         "models_root: a model that a request brings would come to one worker alone; expected none in a "
         "fleet");
  for (const ResolvedSettings::OfWorker& entry : resolved.of_workers) check_section(entry, workers_);
  if (!resolved.of_workers.empty())
    for (const std::string& worker : workers_) check_share(resolve_one(worker, changes), worker);
  return resolved;
}

ResolvedSettings WorkerSettings::resolve_one(const std::string& worker,
                                             const fleet::Settings& changes) const {
  std::vector<std::string> options = options_with(changes);
  options.push_back(concat(kWhose, "=", worker));
  return ServeOptions(std::move(options)).settings().resolve();
}

std::vector<std::string> WorkerSettings::options_with(const fleet::Settings& changes) const {
  std::vector<std::string> options = given_;
  for (const auto& [key, value] : changes) {
    const std::string flag = flag_named(key) + "=";
    std::erase_if(options, [&](const std::string& option) { return option.starts_with(flag); });
    options.push_back(flag + value);
  }
  return options;
}

std::vector<std::string> WorkerSettings::options(const std::string& worker) const {
  std::vector<std::string> options = options_with(changes_);
  for (const std::string_view key : kOfFleet) {
    const std::string flag = flag_named(std::string(key));
    std::erase_if(options, [&](const std::string& option) { return option.starts_with(flag + "="); });
    options.insert(options.end(), {flag, ""});  // the environment and the file count less
  }
  options.push_back(concat(kWhose, "=", worker));
  if (const auto share = shares_mb_.find(worker); share != shares_mb_.end() && takes_share(worker)) {
    const std::string flag = "--kv-memory-mb=";
    std::erase_if(options, [&](const std::string& option) { return option.starts_with(flag); });
    options.push_back(concat(flag, share->second));
  }
  return options;
}

// With settings that are wrong now the worker refuses to start, and is tried again.
bool WorkerSettings::takes_share(const std::string& worker) const {
  try {
    return resolve_one(worker, changes_).config.kv_memory_mb == 0;
  } catch (const Error&) {
    return true;
  }
}

void WorkerSettings::change(const fleet::Settings& changes) {
  for (const auto& [key, value] : changes) check_change(key);
  resolve(changes);
  changes_ = changes;
}

}  // namespace shoal::cli
