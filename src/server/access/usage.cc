#include "server/access/usage.h"

#include <algorithm>

#include "base/error.h"

namespace shoal::server {

using std::chrono::seconds;

constexpr seconds kMinute{60}, kDay{86'400};

const std::array<KeyLimitKind, kKeyLimits> kKeyLimitKinds = {{
    {"requests_per_minute", "requests", "requests a minute", kMinute, true},
    {"characters_per_minute", "characters", "characters a minute", kMinute},
    {"characters_per_day", "characters-day", "characters a day", kDay},
}};

namespace {

int64_t used_now(Usage::Time since, int64_t used, const KeyLimitKind& kind, Usage::Time now) {
  return now - since < kind.window ? used : 0;
}

// Whole seconds until a window ends, at least 1 while something of it is used.
int64_t seconds_left(Usage::Time since, const KeyLimitKind& kind, Usage::Time now) {
  return std::max<int64_t>(1, std::chrono::ceil<seconds>(since + kind.window - now).count());
}

void check_limit(const KeyLimitState& state, int64_t amount) {
  if (amount <= state.left) return;
  const KeyLimitKind& kind = *state.kind;
  if (!kind.of_requests && amount > state.limit)
    fail(ErrorCode::too_large, "text: ", amount, " characters, and this API key may speak ", state.limit, ' ',
         kind.words, "; split the text");
  throw OverLimit(concat("limit of this API key: ", state.limit, ' ', kind.words, ", of which ", state.left,
                         " are left; try again in ", state.reset_s, " s"),
                  static_cast<int>(state.reset_s));
}

}  // namespace

void Usage::set_limits(std::map<std::string, KeyLimits> limits) {
  const std::lock_guard lock(mutex_);
  limits_ = std::move(limits);
}

void Usage::add_request(const std::string& key, Time now) { add(key, true, 1, now); }

void Usage::add_characters(const std::string& key, int64_t characters, Time now) {
  add(key, false, characters, now);
}

void Usage::add(const std::string& key, bool requests, int64_t amount, Time now) {
  const std::lock_guard lock(mutex_);
  Used& used = used_[key];
  for (const KeyLimitState& state : told(key, used, now).limits) {
    if (state.kind->of_requests == requests) check_limit(state, amount);
  }
  for (size_t i = 0; i < kKeyLimits; ++i) {
    const KeyLimitKind& kind = kKeyLimitKinds[i];
    if (kind.of_requests != requests) continue;
    Window& window = used.windows[i];
    if (used_now(window.since, window.used, kind, now) == 0) window = {.since = now, .used = 0};
    window.used += amount;
  }
  (requests ? used.requests : used.characters) += static_cast<uint64_t>(amount);
}

void Usage::give_back(const std::string& key, int64_t characters) {
  const std::lock_guard lock(mutex_);
  Used& used = used_[key];
  used.characters -= std::min(used.characters, static_cast<uint64_t>(characters));
  for (size_t i = 0; i < kKeyLimits; ++i) {
    Window& window = used.windows[i];
    if (!kKeyLimitKinds[i].of_requests) window.used = std::max<int64_t>(0, window.used - characters);
  }
}

void Usage::add_sound(const std::string& key, double sound_s) {
  const std::lock_guard lock(mutex_);
  used_[key].sound_s += sound_s;
}

KeyLimits Usage::limits_of(const std::string& key) const {
  const auto found = limits_.find(key);
  return found == limits_.end() ? KeyLimits{} : found->second;
}

KeyUsage Usage::told(const std::string& key, const Used& used, Time now) const {
  KeyUsage usage{
      .key = key, .requests = used.requests, .characters = used.characters, .sound_s = used.sound_s};
  const KeyLimits limits = limits_of(key);
  for (size_t i = 0; i < kKeyLimits; ++i) {
    if (limits[i] == 0) continue;
    const Window& window = used.windows[i];
    const int64_t amount = used_now(window.since, window.used, kKeyLimitKinds[i], now);
    usage.limits.push_back({.kind = &kKeyLimitKinds[i],
                            .limit = limits[i],
                            .left = std::max<int64_t>(0, limits[i] - amount),
                            .reset_s = amount > 0 ? seconds_left(window.since, kKeyLimitKinds[i], now) : 0});
  }
  return usage;
}

KeyUsage Usage::of(const std::string& key, Time now) const {
  const std::lock_guard lock(mutex_);
  const auto found = used_.find(key);
  return told(key, found == used_.end() ? Used{} : found->second, now);
}

std::vector<KeyUsage> Usage::all(Time now) const {
  const std::lock_guard lock(mutex_);
  std::vector<KeyUsage> all;
  for (const auto& [key, used] : used_) all.push_back(told(key, used, now));
  return all;
}

Headers Usage::headers(const std::string& key, Time now) const {
  Headers headers;
  for (const KeyLimitState& state : of(key, now).limits) {
    const std::string name(state.kind->header);
    headers.add("x-ratelimit-limit-" + name, std::to_string(state.limit));
    headers.add("x-ratelimit-remaining-" + name, std::to_string(state.left));
    headers.add("x-ratelimit-reset-" + name, std::to_string(state.reset_s) + "s");
  }
  return headers;
}

}  // namespace shoal::server
