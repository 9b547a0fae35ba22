// The settings of `shoal serve` that the workers of a fleet share.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "fleet/desk.h"
#include "shoal/settings.h"

namespace CLI {
class App;
}

namespace shoal::cli {

// What was given to a parsed command, as "--name=value", without the options of these long names.
std::vector<std::string> given_options(const CLI::App& command, const std::vector<std::string>& without = {});

// The settings of a fleet's workers. A worker's own come first: its section [workers.w2] of the file counts
// more than all the others.
class WorkerSettings {
 public:
  // `options` as `shoal serve` has them; `workers`: their names. Throws what `shoal serve` would throw, and
  // Error(invalid_argument) for settings that are the fleet's to give and for sections of unknown workers.
  WorkerSettings(std::vector<std::string> options, std::vector<std::string> workers);

  // As they are now, of all without sections: the environment and the file are read anew, and those of each
  // worker are checked. Throws as the constructor.
  ResolvedSettings resolve() const { return resolve(changes_); }
  // Options for a worker, which has no operator_listen and no TLS: they are the fleet's.
  std::vector<std::string> options(const std::string& worker) const;
  // MiB of keys and values for each model of these workers, unless their settings name some.
  void give_shares(std::map<std::string, int64_t> shares_mb) { shares_mb_ = std::move(shares_mb); }
  // In place of the changes before. Throws Error when the workers would refuse them; then nothing has
  // changed.
  void change(const fleet::Settings& changes);

 private:
  ResolvedSettings resolve(const fleet::Settings& changes) const;
  std::vector<std::string> options_with(const fleet::Settings& changes) const;
  ResolvedSettings resolve_one(const std::string& worker, const fleet::Settings& changes) const;

  bool takes_share(const std::string& worker) const;

  std::vector<std::string> given_, workers_;
  std::map<std::string, int64_t> shares_mb_;
  fleet::Settings changes_;
};

}  // namespace shoal::cli
