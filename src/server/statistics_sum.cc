#include "server/statistics_sum.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

namespace shoal::server {
namespace {

using Object = Value::Object;
using Array = Value::Array;

constexpr std::array<std::string_view, 2> kSameEverywhere = {"id", "page_size"};

double as_number(const Value& value) {
  if (const auto* integer = value.as<int64_t>()) return static_cast<double>(*integer);
  const auto* number = value.as<double>();
  return number ? *number : 0;
}

double number_at(const Value& object, std::string_view name) {
  const Value* found = object.find(name);
  return found ? as_number(*found) : 0;
}

Value merged(std::string_view name, const std::vector<Value>& values);

// The values of one name in each object that has it and says something.
std::vector<Value> named(const std::vector<Value>& objects, std::string_view name) {
  std::vector<Value> values;
  for (const Value& object : objects)
    if (const Value* found = object.find(name); found && !found->is_null()) values.push_back(*found);
  return values;
}

// All names, in the order of the first object that has each.
std::vector<std::string> names_of(const std::vector<Value>& objects) {
  std::vector<std::string> names;
  for (const Value& value : objects)
    if (const auto* object = value.as<Object>())
      for (const auto& [name, member] : *object)
        if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  return names;
}

Value distribution(const std::vector<Value>& all) {
  int64_t count = 0;
  double total = 0;
  for (const Value& one : all) {
    count += static_cast<int64_t>(number_at(one, "count"));
    total += number_at(one, "count") * number_at(one, "mean");
  }
  Object members{{"count", {count}},
                 {"mean", count > 0 ? Value{total / static_cast<double>(count)} : Value{}}};
  for (const std::string& name : names_of(all)) {
    if (name == "count" || name == "mean") continue;
    const std::vector<Value> values = named(all, name);
    const auto largest = std::ranges::max_element(values, {}, as_number);
    members.emplace_back(name, largest == values.end() ? Value{} : *largest);
  }
  return {std::move(members)};
}

Value object(const std::vector<Value>& all) {
  if (all.front().find("count") && all.front().find("mean")) return distribution(all);
  Object members;
  for (const std::string& name : names_of(all)) members.emplace_back(name, merged(name, named(all, name)));
  for (auto& [name, value] : members) {
    if (name != "hit_rate") continue;
    const double hits = number_at(Value{members}, "hit_columns");
    const double all_columns = hits + number_at(Value{members}, "missed_columns");
    value = {all_columns > 0 ? hits / all_columns : 0.0};
  }
  return {std::move(members)};
}

// Entries of one name together.
Value array(const std::vector<Value>& all) {
  std::vector<std::pair<std::string, std::vector<Value>>> groups;
  for (const Value& one : all) {
    for (const Value& entry : *one.as<Array>()) {
      const Value* name = entry.find("name");
      const std::string key = name && name->as<std::string>() ? *name->as<std::string>() : "";
      const auto group = std::ranges::find(groups, key, [](const auto& pair) { return pair.first; });
      if (group == groups.end())
        groups.push_back({key, {entry}});
      else
        group->second.push_back(entry);
    }
  }
  Array entries;
  for (const auto& [name, group] : groups) entries.push_back(object(group));
  return {std::move(entries)};
}

Value same_or_null(const std::vector<Value>& all) {
  return std::ranges::all_of(all, [&](const Value& one) { return one == all.front(); }) ? all.front()
                                                                                        : Value{};
}

Value number(std::string_view name, const std::vector<Value>& all) {
  double total = 0, longest = 0;
  for (const Value& one : all) {
    total += as_number(one);
    longest = std::max(longest, as_number(one));
  }
  if (name == "uptime_s") return {longest};
  if (name == "audio_s") return {total};
  return {total / static_cast<double>(all.size())};
}

Value merged(std::string_view name, const std::vector<Value>& values) {
  if (values.empty()) return {};
  const Value& first = values.front();
  const bool is_alike = std::ranges::all_of(
      values, [&](const Value& value) { return value.data.index() == first.data.index(); });
  if (!is_alike || first.as<std::string>() || std::ranges::count(kSameEverywhere, name) > 0)
    return same_or_null(values);
  if (first.as<bool>()) return {std::ranges::count(values, Value{true}) > 0};
  if (first.as<double>()) return number(name, values);
  if (first.as<Object>()) return object(values);
  if (first.as<Array>()) return array(values);
  int64_t total = 0;
  for (const Value& value : values) total += *value.as<int64_t>();
  return {total};
}

}  // namespace

Value sum_statistics(const std::vector<Value>& servers) { return merged("", servers); }

}  // namespace shoal::server
