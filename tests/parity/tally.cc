#include "tests/parity/tally.h"

#include <algorithm>
#include <cstdio>
#include <gtest/gtest.h>
#include <map>

namespace shoal::parity {
namespace {

struct Total {
  size_t cases = 0, tried = 0, absent = 0;
  int64_t values = 0;
};

std::map<std::string, Total>& totals() {
  static std::map<std::string, Total> all;
  return all;
}

void add_once(std::vector<std::string>& names, const std::string& name) {
  if (std::ranges::find(names, name) == names.end()) names.push_back(name);
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "nothing" : text;
}

}  // namespace

Tally::Case& Tally::find(const std::string& name) {
  const auto found = std::ranges::find(cases_, name, &Case::name);
  return found != cases_.end() ? *found : cases_.emplace_back(Case{name, {}, {}});
}

void Tally::tried(const std::string& of_case, const std::string& what, int64_t values) {
  Case& entry = find(of_case);
  add_once(entry.tried, what);
  entry.values += values;
}

void Tally::absent(const std::string& of_case, const std::string& what) {
  add_once(find(of_case).absent, what);
}

int64_t Tally::values() const {
  int64_t sum = 0;
  for (const Case& entry : cases_) sum += entry.values;
  return sum;
}

void Tally::report() const {
  Total& total = totals()[dir_];
  for (const Case& entry : cases_) {
    std::printf("%s: %s: %s: tried %s (%lld values); absent: %zu%s%s\n", dir_.c_str(), check_.c_str(),
                entry.name.c_str(), joined(entry.tried).c_str(), static_cast<long long>(entry.values),
                entry.absent.size(), entry.absent.empty() ? "" : ", ",
                entry.absent.empty() ? "" : joined(entry.absent).c_str());
    total.cases += !entry.tried.empty();
    total.tried += entry.tried.size();
    total.absent += entry.absent.size();
    total.values += entry.values;
  }
  std::string key = check_ + "_values_compared";
  std::ranges::replace_if(key, [](char c) { return c == ' ' || c == ','; }, '_');
  testing::Test::RecordProperty(key, std::to_string(values()));
}

void Tally::report_something() const {
  report();
  EXPECT_GT(values(), 0) << dir_ << ": " << check_ << ": nothing to compare";
}

void print_total(const std::string& dir) {
  const Total& total = totals()[dir];
  std::printf("%s: %zu goldens and properties tried in %zu cases of all checks (%lld values), %zu absent\n",
              dir.c_str(), total.tried, total.cases, static_cast<long long>(total.values), total.absent);
}

}  // namespace shoal::parity
