// Which hosts a running HAProxy has, made those of a list through its runtime socket.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "fleet/host_list.h"

namespace shoal::fleet {

class HostRoster {
 public:
  // Commands of the runtime socket, and what HAProxy answers; nothing if it does not.
  using Ask = std::function<std::optional<std::string>(const std::string& commands)>;
  explicit HostRoster(Ask ask) : ask_(std::move(ask)) {}

  void want(const std::vector<HostPlan>& hosts);
  // A new HAProxy has the hosts that were wanted last.
  void balancer_started();
  // Does what is left to do, at most once a second. A host that leaves gets no more requests at once, and is
  // gone when its last answer has ended.
  void step(int64_t now_us);
  // Its connections end with the next step: requests whose answer has not begun go to another, begun answers
  // break. HAProxy's own checks bring it back.
  void cut_off(const std::string& name);

 private:
  using Hosts = std::map<std::string, HostPlan>;
  std::optional<std::string> ask(const std::string& commands);
  bool is_done(const std::string& commands);
  bool says(const std::string& command, std::initializer_list<const char*> signs);
  void keep(HostPlan& host, const HostPlan& wanted);
  void add(const HostPlan& host);

  const Ask ask_;
  Hosts wanted_, there_;
  std::set<std::string> leaving_;  // of those that are there
  std::set<std::string> lost_;     // whose connections are still to be ended
  bool is_silent_ = false;         // HAProxy, in this step: it is asked no more
  int64_t next_us_ = 0;
};

}  // namespace shoal::fleet
