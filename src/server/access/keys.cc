#include "server/access/keys.h"

#include <algorithm>
#include <charconv>
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <sys/stat.h>

#include "base/blanks.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/printable.h"
#include "server/http/message.h"
#include "settings/api_key.h"

namespace shoal::server {
namespace {

constexpr int64_t kMostFileBytes = 1 << 20;
constexpr size_t kMostKeys = 1000;  // all are compared with each request's
constexpr size_t kMostNameBytes = 64;
constexpr std::string_view kBlanks = " \t\r";
using settings::is_key;
using settings::kMostKeyBytes;

constexpr size_t kMostPathShown = 4096;

bool is_name(std::string_view text) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  return !text.empty() && text.size() <= kMostNameBytes && std::ranges::all_of(text, fits);
}

// "KEY" of "Bearer KEY"; empty for anything else.
std::string_view bearer_of(std::string_view authorization) {
  constexpr std::string_view kScheme = "Bearer";
  if (authorization.size() <= kScheme.size() || authorization[kScheme.size()] != ' ' ||
      !equal_ignoring_case(authorization.substr(0, kScheme.size()), kScheme))
    return {};
  return without_blanks(authorization.substr(kScheme.size()), kBlanks);
}

// " requests_per_minute=60 characters_per_day=100000", each at most once.
KeyLimits read_limits(std::string_view text, const std::string& where) {
  const auto refuse = [&] {
    fail(ErrorCode::invalid_argument, where,
         ": expected KEY or NAME:KEY, and behind a blank, if any, requests_per_minute=N, "
         "characters_per_minute=N or characters_per_day=N, N from 1 on");
  };
  KeyLimits limits{};
  for (text = without_blanks(text, kBlanks); !text.empty(); text = without_blanks(text, kBlanks)) {
    const size_t end = std::min(text.find_first_of(kBlanks), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(end);
    const size_t equals = std::min(word.find('='), word.size() - 1);
    const std::string_view name = word.substr(0, equals), number = word.substr(equals + 1);
    const auto kind = std::ranges::find(kKeyLimitKinds, name, &KeyLimitKind::name);
    if (kind == kKeyLimitKinds.end()) refuse();
    int64_t& limit = limits[static_cast<size_t>(kind - kKeyLimitKinds.begin())];
    if (limit != 0) refuse();
    const auto [stop, error] = std::from_chars(number.data(), number.data() + number.size(), limit);
    if (error != std::errc() || stop != number.data() + number.size() || limit < 1) refuse();
  }
  return limits;
}

void remark_if_open(const std::string& path, std::string_view field) {
  struct stat status{};
  if (stat(path.c_str(), &status) == 0 && (status.st_mode & S_IROTH) != 0)
    log(LogLevel::warning, field, "_file: every user of this machine may read ",
        printable(path, kMostPathShown), "; chmod o-r closes it");
}

}  // namespace

ApiKeys::ApiKeys(const std::string& key, const std::string& path, std::string_view field) {
  if (!key.empty()) add("key-1", key, std::string(field));
  if (!path.empty()) add_file(path, field);
}

void ApiKeys::add_file(const std::string& path, std::string_view field) {
  const std::string text = read_file(path, kMostFileBytes);
  const std::string where = concat(field, "_file: ", printable(path, kMostPathShown));
  remark_if_open(path, field);
  const size_t before = keys_.size();
  std::string_view rest = text;
  for (int number = 1; !rest.empty(); ++number) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = without_blanks(rest.substr(0, end), kBlanks);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.empty() || line.starts_with('#')) continue;
    add_line(line, concat(where, ":", number));
  }
  if (keys_.size() == before) fail(ErrorCode::invalid_argument, where, ": expected keys, got none");
}

void ApiKeys::add_line(std::string_view line, const std::string& where) {
  const size_t end = std::min(line.find_first_of(kBlanks), line.size());
  const std::string_view limits = line.substr(end);
  line = line.substr(0, end);
  const size_t colon = line.find(':');
  const bool named = colon != std::string_view::npos;
  add(named ? std::string(line.substr(0, colon)) : concat("key-", keys_.size() + 1),
      named ? line.substr(colon + 1) : line, where);
  keys_.back().limits = read_limits(limits, where);
}

// A line that is wrong may be a key in the wrong place: no part of it is shown.
void ApiKeys::add(std::string name, std::string_view key, const std::string& where) {
  if (!is_name(name))
    fail(ErrorCode::invalid_argument, where, ": expected KEY or NAME:KEY, a name being at most ",
         kMostNameBytes, " letters, digits, '.', '_' or '-' (a key with a colon needs a name before it)");
  if (!is_key(key))
    fail(ErrorCode::invalid_argument, where, ": expected a key of 1 to ", kMostKeyBytes,
         " printable ASCII characters without blanks");
  if (keys_.size() == kMostKeys) fail(ErrorCode::too_large, where, ": expected at most ", kMostKeys, " keys");
  const Digest digest = digest_of(key);
  for (const Key& other : keys_) {
    if (other.name == name)
      fail(ErrorCode::invalid_argument, where, ": the name ", name, " stands before already");
    if (other.digest == digest)
      fail(ErrorCode::invalid_argument, where, ": the same key stands before already, as ", other.name);
  }
  keys_.push_back({.name = std::move(name), .digest = digest});
}

ApiKeys::Digest ApiKeys::digest_of(std::string_view key) {
  Digest digest;
  SHA256(reinterpret_cast<const unsigned char*>(key.data()), key.size(), digest.data());
  return digest;
}

std::optional<std::string> ApiKeys::client_of(std::string_view authorization) const {
  return client_with(bearer_of(authorization));
}

std::optional<std::string> ApiKeys::client_with(std::string_view key) const {
  // Without a valid key: the digest of "", which belongs to no key.
  const Digest digest = digest_of(is_key(key) ? key : std::string_view());
  size_t found = keys_.size();
  for (size_t i = 0; i < keys_.size(); ++i) {
    const bool same = CRYPTO_memcmp(keys_[i].digest.data(), digest.data(), digest.size()) == 0;
    const size_t mask = size_t{0} - static_cast<size_t>(same);
    found = (found & ~mask) | (i & mask);
  }
  if (found == keys_.size()) return std::nullopt;
  return keys_[found].name;
}

std::map<std::string, KeyLimits> ApiKeys::limits() const {
  std::map<std::string, KeyLimits> all;
  for (const Key& key : keys_) {
    if (key.limits != KeyLimits{}) all.emplace(key.name, key.limits);
  }
  return all;
}

bool ApiKeys::shares_a_key_with(const ApiKeys& other) const {
  return std::ranges::any_of(keys_, [&](const Key& key) {
    return std::ranges::find(other.keys_, key.digest, &Key::digest) != other.keys_.end();
  });
}

}  // namespace shoal::server
