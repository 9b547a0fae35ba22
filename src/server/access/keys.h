// API keys.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/access/usage.h"

namespace shoal::server {

// The keys of clients, or of administrators. Stores only their digests.
class ApiKeys {
 public:
  ApiKeys() = default;  // none
  // `key` and the keys of the file `path`, each perhaps empty. The file has one key per line, KEY or
  // NAME:KEY, perhaps with limits behind it, requests_per_minute=60 characters_per_minute=5000
  // characters_per_day=100000; blank lines and lines that begin with # are skipped. Keys without a name are
  // called key-N by their position, `key` being the first. `field` is the setting of `key`, for messages and
  // for the warning about a file that every user of the machine may read. Throws Error, never with a key in
  // it: invalid_argument naming the line (format, a duplicate key or name, no key at all), not_found, io,
  // too_large.
  ApiKeys(const std::string& key, const std::string& path, std::string_view field = "api_key");

  bool empty() const { return keys_.empty(); }
  // Name of the key in "Bearer KEY"; absent for anything else. The time does not depend on how much of a key
  // is right, nor on which key it is.
  std::optional<std::string> client_of(std::string_view authorization) const;
  // The same of a bare KEY.
  std::optional<std::string> client_with(std::string_view key) const;
  // Of the keys that have some, by name.
  std::map<std::string, KeyLimits> limits() const;
  // Some key is in both.
  bool shares_a_key_with(const ApiKeys& other) const;

 private:
  using Digest = std::array<uint8_t, 32>;  // SHA-256
  struct Key {
    std::string name;
    Digest digest;
    KeyLimits limits{};
  };

  static Digest digest_of(std::string_view key);
  void add(std::string name, std::string_view key, const std::string& where);
  void add_line(std::string_view line, const std::string& where);
  void add_file(const std::string& path, std::string_view field);

  std::vector<Key> keys_;
};

}  // namespace shoal::server
