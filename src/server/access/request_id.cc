#include "server/access/request_id.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <random>

namespace shoal::server {
namespace {

bool is_usable(std::string_view id) {
  return !id.empty() && id.size() <= 64 && std::all_of(id.begin(), id.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  });
}

std::string new_id() {
  static const uint64_t process = [] {
    std::random_device entropy;
    return (uint64_t{entropy()} << 32) | entropy();
  }();
  static std::atomic<uint64_t> count{0};
  char text[40];
  std::snprintf(text, sizeof text, "req-%016llx-%llu", static_cast<unsigned long long>(process),
                static_cast<unsigned long long>(++count));
  return text;
}

}  // namespace

std::string request_id_of(const Request& head) {
  const std::string* own = head.headers.find("x-request-id");
  return own && is_usable(*own) ? *own : new_id();
}

}  // namespace shoal::server
