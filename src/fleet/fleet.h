// The loop of a supervisor. Only supervisor.cc makes one.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "fleet/host.h"
#include "fleet/host_roster.h"
#include "fleet/process.h"
#include "fleet/rolling.h"
#include "fleet/rotation.h"
#include "fleet/supervisor.h"

namespace shoal::fleet {

class Fleet {
 public:
  explicit Fleet(const FleetOptions& options);

  void run();  // until it is asked to end
  void end();  // once, also after run() has thrown

 private:
  struct Rolling {
    const char* what;
    RollingRestart turns;
    std::optional<Settings> before;  // of a reload: what a rollback returns to
  };

  std::unique_ptr<Process> made(const WorkerPlan& plan, const char* setting,
                                std::function<Command(const WorkerPlan&)> command,
                                const std::string& ready_socket = {}) const;
  void note_end(Process& process, const Ended& ended);
  void start_next();
  void start_balancer();
  void look_after(Process& process);
  void wait() const;
  std::vector<Process*> processes() const;  // the workers, then the balancer

  // fleet_hosts.cc
  void look_after_hosts();
  void take(const std::vector<HostPlan>& hosts);

  // fleet_orders.cc
  void answer(const Order& order);
  void obey(const Order& order);
  void drain(const std::string& name);
  void resume(const std::string& name);
  void change(const Settings& settings);
  void begin_rolling(const char* what, std::vector<size_t> turns, std::optional<Settings> before = {});
  void roll();
  void end_rolling();
  void note_rolling(const char* outcome);
  WorkerState state_of(const std::string& name) const;
  size_t named(const std::string& name) const;  // among the workers of this machine
  std::vector<size_t> everyone() const;
  std::vector<RollingRestart::Worker> worker_states() const;
  FleetStatus status() const;

  const FleetOptions& options_;
  std::vector<std::unique_ptr<Process>> workers_;
  std::unique_ptr<Process> balancer_;  // none
  std::vector<std::unique_ptr<Host>> hosts_;
  HostRoster roster_;
  Rotation rotation_;
  Settings settings_;  // of reloads
  std::optional<Rolling> rolling_;
  std::optional<RollingStatus> last_rolling_;
  const int64_t began_us_;
  size_t first_starts_ = 0;  // workers that have had theirs
  int64_t last_start_us_ = 0;
  bool is_ready_ = false;  // the last of them has been ready
  bool any_was_ready_ = false;
};

}  // namespace shoal::fleet
