#include "fleet/host_list.h"

#include <algorithm>
#include <charconv>
#include <sstream>

#include "base/error.h"
#include "base/printable.h"

namespace shoal::fleet {
namespace {

constexpr int kMostWeight = 256;  // of HAProxy

bool is_name(const std::string& name) {
  constexpr size_t kLongest = 64;
  constexpr const char *kDigits = "0123456789",
                       *kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
  const bool is_of_this_machine =
      name.starts_with('w') && name.find_first_not_of(kDigits, 1) == std::string::npos;
  return !name.empty() && name.size() <= kLongest && !is_of_this_machine &&
         name.find_first_not_of(kLetters) == std::string::npos;
}

template <typename... Parts>
[[noreturn]] void refuse(int line, const Parts&... parts) {
  fail(ErrorCode::invalid_argument, "hosts: line ", line, ": ", parts...);
}

void take_word(HostPlan& host, const std::string& word, int line) {
  const size_t equals = std::min(word.find('='), word.size());
  const std::string key = word.substr(0, equals), value = word.substr(std::min(equals + 1, word.size()));
  if (key == "name") {
    if (!is_name(value))
      refuse(line, "name: expected letters, digits, - _ . and none like w1, got \"", printable(value), "\"");
    host.name = value;
  } else if (key == "weight") {
    const char* last = value.data() + value.size();
    const auto [end, error] = std::from_chars(value.data(), last, host.weight);
    if (error != std::errc{} || end != last || host.weight < 1 || host.weight > kMostWeight)
      refuse(line, "weight: expected 1 to ", kMostWeight, ", got \"", printable(value), "\"");
  } else {
    refuse(line, "expected name=NAME or weight=N after the address, got \"", printable(word), "\"");
  }
}

HostPlan parse_line(const std::string& text, int number) {
  std::istringstream words(text);
  std::string word;
  words >> word;
  const auto address = parse_address(word);
  if (!address)
    refuse(number, "expected an IPv4 address and a port, as in 10.0.0.7:8080, got \"", printable(word), "\"");
  HostPlan host{.name = word, .address = *address};
  while (words >> word) take_word(host, word, number);
  return host;
}

}  // namespace

std::vector<HostPlan> parse_hosts(std::string_view text) {
  std::vector<HostPlan> hosts;
  std::istringstream lines{std::string(text)};
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    line.erase(std::min(line.find('#'), line.size()));
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    HostPlan host = parse_line(line, number);
    const auto is_same = [&](const HostPlan& other) {
      return other.name == host.name || other.address == host.address;
    };
    if (std::ranges::any_of(hosts, is_same)) refuse(number, "\"", host.name, "\" stands there twice");
    if (hosts.size() == kMostHosts) refuse(number, "there are more than ", kMostHosts, " hosts");
    hosts.push_back(std::move(host));
  }
  return hosts;
}

std::string server_of(const HostPlan& host) {
  return concat(host.name, " ", host.address.host, ":", host.address.port, " ", kHealth, " weight ",
                host.weight);
}

}  // namespace shoal::fleet
