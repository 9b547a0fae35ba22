// A worker of another machine: asked for its health, never started or ended.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "fleet/host_list.h"
#include "fleet/probe.h"
#include "fleet/watch.h"

struct pollfd;

namespace shoal::fleet {

class Host {
 public:
  // The rules outlive it.
  Host(const WatchRules& rules, HostPlan plan)
      : rules_(rules),
        plan_(std::move(plan)),
        target_{.host = plan_.address.host,
                .port = plan_.address.port,
                .header = concat(kFleetHeader, ": +\r\n")} {}

  const HostPlan& plan() const { return plan_; }
  WorkerState state() const { return state_; }  // ready, unready, unreachable; starting: not known yet
  std::string last_error() const { return state_ == WorkerState::unreachable ? "gives no answer" : ""; }

  void watch_for(std::vector<pollfd>& events) const;
  // Asks when that is due. Whether it has just become unreachable.
  bool check();

 private:
  WorkerState state_after(CheckResult result);

  const WatchRules& rules_;
  const HostPlan plan_;
  const Target target_;
  Probe probe_;
  WorkerState state_ = WorkerState::starting;
  int64_t asked_us_ = 0;
  int silent_checks_ = 0;
};

}  // namespace shoal::fleet
