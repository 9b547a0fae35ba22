// Hosts: workers of other machines.
#include <algorithm>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "fleet/fleet.h"

namespace shoal::fleet {

void Fleet::look_after_hosts() {
  if (!balancer_) return;
  if (const auto list = options_.new_hosts()) take(*list);
  for (const auto& host : hosts_) {
    if (host->check()) roster_.cut_off(host->plan().name);
    rotation_.update(host->plan().name, host->state() == WorkerState::ready);
  }
  roster_.step(now_us());
}

// Those that stay as they were keep what is known of them.
void Fleet::take(const std::vector<HostPlan>& hosts) {
  std::vector<std::unique_ptr<Host>> before = std::exchange(hosts_, {});
  for (const HostPlan& plan : hosts) {
    const auto is_same = [&](const auto& host) { return host && host->plan() == plan; };
    const auto known = std::ranges::find_if(before, is_same);
    if (known == before.end())
      log(LogLevel::info, plan.name, ": a host of the fleet, ", plan.address.host, ":", plan.address.port);
    hosts_.push_back(known != before.end() ? std::move(*known)
                                           : std::make_unique<Host>(options_.of_processes.rules, plan));
  }
  for (const auto& host : before) {
    if (!host) continue;
    const auto stays = [&](const HostPlan& plan) {
      return plan.name == host->plan().name && plan.address == host->plan().address;
    };
    if (std::ranges::any_of(hosts, stays)) continue;
    log(LogLevel::info, host->plan().name, ": no host of the fleet any more");
    rotation_.forget(host->plan().name);
  }
  roster_.want(hosts);
  if (!options_.balancer->remember_hosts) return;
  try {
    options_.balancer->remember_hosts(hosts);
  } catch (const Error& error) {
    log(LogLevel::error,
        "the hosts of a balancer that is started again stay as they were: ", error.message());
  }
}

}  // namespace shoal::fleet
