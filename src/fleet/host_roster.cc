#include "fleet/host_roster.h"

#include <algorithm>

#include "base/error.h"
#include "base/log.h"

namespace shoal::fleet {
namespace {

std::string server(const std::string& name) { return "server workers/" + name; }

}  // namespace

void HostRoster::want(const std::vector<HostPlan>& hosts) {
  wanted_.clear();
  for (const HostPlan& host : hosts) wanted_.emplace(host.name, host);
  next_us_ = 0;
}

void HostRoster::balancer_started() {
  there_ = wanted_;
  leaving_.clear();
  lost_.clear();
}

// An answer that does not come is waited for long, and the fleet waits with it: once in a step.
std::optional<std::string> HostRoster::ask(const std::string& commands) {
  if (is_silent_) return std::nullopt;
  std::optional<std::string> answer = ask_(commands);
  is_silent_ = !answer;
  return answer;
}

// Empty lines mean that all was done.
bool HostRoster::is_done(const std::string& commands) {
  const std::optional<std::string> answer = ask(commands);
  return answer && answer->find_first_not_of('\n') == std::string::npos;
}

bool HostRoster::says(const std::string& command, std::initializer_list<const char*> signs) {
  const std::string answer = ask(command).value_or("");
  return std::ranges::any_of(signs, [&](const char* sign) { return answer.starts_with(sign); });
}

void HostRoster::step(int64_t now_us) {
  constexpr int64_t kPause_us = 1'000'000;
  if ((wanted_ == there_ && leaving_.empty() && lost_.empty()) || now_us < next_us_) return;
  next_us_ = now_us + kPause_us;
  is_silent_ = false;
  std::erase_if(lost_, [&](const std::string& name) {
    return !there_.contains(name) ||
           is_done(concat("set ", server(name), " health down;shutdown sessions ", server(name)));
  });
  for (auto host = there_.begin(); host != there_.end();) {
    const auto& [name, plan] = *host;
    const auto wanted = wanted_.find(name);
    if (wanted != wanted_.end() && wanted->second.address == plan.address) {
      keep(host->second, wanted->second);
      ++host;
      continue;
    }
    leaving_.insert(name);
    // Refused as long as it has connections.
    is_done(concat("set ", server(name), " state maint"));
    if (!says("del " + server(name), {"Server deleted", "No such server"})) {
      ++host;
      continue;
    }
    leaving_.erase(name);
    host = there_.erase(host);
  }
  for (const auto& [name, plan] : wanted_)
    if (!there_.contains(name)) add(plan);
}

void HostRoster::keep(HostPlan& host, const HostPlan& wanted) {
  if (leaving_.contains(host.name) && is_done(concat("set ", server(host.name), " state ready")))
    leaving_.erase(host.name);
  if (host.weight != wanted.weight && is_done(concat("set ", server(host.name), " weight ", wanted.weight)))
    host.weight = wanted.weight;
}

// HAProxy would take it for ready; its check says so soon enough.
void HostRoster::add(const HostPlan& host) {
  const std::string name = server(host.name);
  const bool is_there = says("add server workers/" + server_of(host), {"New server", "Already exists"});
  if (is_there && is_done(concat("enable health workers/", host.name, ";set ", name, " state ready;set ",
                                 name, " health down")))
    there_.emplace(host.name, host);
  else
    log(LogLevel::warning, host.name, ": the balancer did not take it; tried again");
}

void HostRoster::cut_off(const std::string& name) {
  lost_.insert(name);
  next_us_ = 0;
}

}  // namespace shoal::fleet
