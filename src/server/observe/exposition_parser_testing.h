// For tests: a strict reader of the text exposition format 0.0.4.
// https://prometheus.io/docs/instrumenting/exposition_formats/
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::server::testing {

class Exposition {
 public:
  using Labels = std::map<std::string, std::string>;

  // Throws std::runtime_error for all invalid input.
  explicit Exposition(std::string_view text) {
    require(text.empty() || text.back() == '\n', "the last line has no end");
    while (!text.empty()) {
      const size_t end = text.find('\n');
      line_ = text.substr(0, end);
      text.remove_prefix(end + 1);
      if (line_.empty()) continue;
      line_.front() == '#' ? read_comment() : read_sample();
    }
    leave_family();
  }

  // The sum of all series of that name which have these labels; 0 without any.
  double value(const std::string& name, const Labels& labels = {}) const {
    double sum = 0;
    for (const auto& [key, value] : samples_) {
      if (key.first == name && std::ranges::includes(key.second, labels)) sum += value;
    }
    return sum;
  }
  bool has(const std::string& family) const { return families_.contains(family); }

 private:
  using Key = std::pair<std::string, Labels>;

  [[noreturn]] void refuse(const std::string& why) const {
    throw std::runtime_error(why + " in \"" + std::string(line_) + "\"");
  }
  void require(bool condition, const std::string& why) const {
    if (!condition) refuse(why);
  }

  static bool is_name(std::string_view name, bool colons) {
    if (name.empty() || (name.front() >= '0' && name.front() <= '9')) return false;
    for (const char c : name) {
      const bool letter =
          (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= '0' && c <= '9');
      if (!letter && !(colons && c == ':')) return false;
    }
    return true;
  }

  void read_comment() {
    std::istringstream words{std::string(line_)};
    std::string hash, kind, name, rest;
    words >> hash >> kind >> name;
    std::getline(words, rest);
    require(hash == "#" && (kind == "HELP" || kind == "TYPE"), "neither HELP nor TYPE");
    require(is_name(name, true), "not a metric's name");
    if (name != family_) {
      leave_family();
      require(families_.insert(name).second, "its family stands in two places");
      family_ = name;
    }
    require(!has_samples_, "after samples of its family");
    if (kind == "HELP") {
      require(!has_help_, "HELP twice");
      has_help_ = true;
      for (size_t i = 0; i < rest.size(); ++i) {
        if (rest[i] != '\\') continue;
        require(++i < rest.size() && (rest[i] == '\\' || rest[i] == 'n'), "unknown escape");
      }
      return;
    }
    require(type_.empty(), "TYPE twice");
    type_ = rest.empty() ? rest : rest.substr(1);
    static const std::set<std::string> kTypes = {"counter", "gauge", "histogram", "summary", "untyped"};
    require(kTypes.contains(type_), "unknown type");
  }

  void read_sample() {
    size_t at = line_.find_first_of("{ ");
    require(at != std::string_view::npos, "no value");
    const std::string name(line_.substr(0, at));
    require(is_name(name, true), "not a metric's name");
    Labels labels;
    if (line_[at] == '{') at = read_labels(at, labels);
    require(at < line_.size() && line_[at] == ' ', "no blank before the value");
    const std::string number(line_.substr(at + 1));
    char* end = nullptr;
    const double value = std::strtod(number.c_str(), &end);
    require(!number.empty() && number.front() != ' ' && *end == '\0', "not a number");
    check_family(name, labels, value);
    require(samples_.emplace(Key{name, labels}, value).second, "the same series twice");
    has_samples_ = true;
    order_.push_back({{name, labels}, value});
  }

  size_t read_labels(size_t at, Labels& labels) {
    ++at;
    while (at < line_.size() && line_[at] != '}') {
      const size_t equals = line_.find('=', at);
      require(equals != std::string_view::npos, "a label without a value");
      const std::string name(line_.substr(at, equals - at));
      require(is_name(name, false), "not a label's name");
      at = equals + 1;
      require(at < line_.size() && line_[at++] == '"', "a label's value without quotes");
      std::string value;
      for (; at < line_.size() && line_[at] != '"'; ++at) {
        if (line_[at] != '\\') {
          value += line_[at];
          continue;
        }
        require(++at < line_.size(), "an escape without a character");
        require(line_[at] == '\\' || line_[at] == '"' || line_[at] == 'n', "unknown escape");
        value += line_[at] == 'n' ? '\n' : line_[at];
      }
      require(at < line_.size(), "a label's value without its end");
      require(labels.emplace(name, value).second, "a label twice");
      ++at;
      if (at < line_.size() && line_[at] == ',') ++at;
    }
    require(at < line_.size(), "labels without their end");
    return at + 1;
  }

  void check_family(const std::string& name, const Labels& labels, double value) const {
    require(!type_.empty() && name.starts_with(family_), "no TYPE before it");
    const std::string suffix = name.substr(family_.size());
    if (type_ == "histogram") {
      require(suffix == "_bucket" || suffix == "_sum" || suffix == "_count", "not a part of a histogram");
      require((suffix == "_bucket") == labels.contains("le"), "`le` belongs to buckets alone");
    } else {
      require(suffix.empty(), "no TYPE before it");
    }
    require(type_ != "counter" || value >= 0, "a counter below zero");
  }

  // Buckets rise in bound and count, the last is +Inf and equals the count, and there is a sum: of each
  // series.
  void leave_family() {
    if (type_ == "histogram") {
      struct Series {
        std::vector<std::pair<double, double>> buckets;
        bool sum = false;
        double count = -1;
      };
      std::map<Labels, Series> all;
      for (const auto& [key, value] : order_) {
        Labels labels = key.second;
        labels.erase("le");
        Series& series = all[labels];
        if (key.first.ends_with("_sum")) series.sum = true;
        if (key.first.ends_with("_count")) series.count = value;
        if (key.first.ends_with("_bucket"))
          series.buckets.push_back({std::strtod(key.second.at("le").c_str(), nullptr), value});
      }
      for (const auto& [labels, series] : all) {
        for (size_t i = 1; i < series.buckets.size(); ++i)
          require(series.buckets[i - 1].first < series.buckets[i].first &&
                      series.buckets[i - 1].second <= series.buckets[i].second,
                  family_ + ": buckets that do not rise");
        require(!series.buckets.empty() && std::isinf(series.buckets.back().first),
                family_ + ": no +Inf bucket");
        require(series.buckets.back().second == series.count, family_ + ": +Inf is not the count");
        require(series.sum, family_ + ": no sum");
      }
    }
    family_.clear();
    type_.clear();
    order_.clear();
    has_help_ = has_samples_ = false;
  }

  std::string_view line_;
  std::string family_, type_;
  bool has_help_ = false, has_samples_ = false;
  std::set<std::string> families_;
  std::map<Key, double> samples_;
  std::vector<std::pair<Key, double>> order_;  // of the family being read
};

}  // namespace shoal::server::testing
