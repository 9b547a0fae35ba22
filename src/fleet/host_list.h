// Workers of other machines: the file of --hosts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fleet/address.h"

namespace shoal::fleet {

struct HostPlan {
  std::string name;
  Address address;
  int weight = 1;  // its share of the requests, against 1 of a worker of this machine

  bool operator==(const HostPlan&) const = default;
};

// A line is "10.0.0.7:8080", and after it, if wanted, "name=gpu7" and "weight=2"; "#" begins a comment.
// Without a name the address is it. Throws Error(invalid_argument) that says the line: nonsense, a name or an
// address that stands there twice, a name like those of this machine's workers (w1), more than kMostHosts.
std::vector<HostPlan> parse_hosts(std::string_view text);
constexpr size_t kMostHosts = 256;

// Of requests that a fleet passes on, and of its checks of hosts: they have as many letters as fleets have
// had it. A fleet with workers of its own gives it to those, so that two fleets may name each other.
constexpr const char* kFleetHeader = "x-shoal-fleet";
constexpr int kMostFleets = 8;  // then it is refused: fleets without workers name each other

// When HAProxy takes a server for dead: after two checks, or one connection that fails.
constexpr const char* kHealth =
    "check inter 500ms fall 2 rise 1 observe layer4 error-limit 1 on-error mark-down";
// As HAProxy's configuration and its runtime socket have it: name, address and checks.
std::string server_of(const HostPlan& host);

}  // namespace shoal::fleet
