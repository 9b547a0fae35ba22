// A question to another server.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/http/message.h"
#include "server/http/task.h"

namespace shoal::server {

struct Peer {
  std::string host = "127.0.0.1";  // IPv4
  uint16_t port = 0;
  bool tls = false;  // its certificate is not checked: send no secrets
};

constexpr uint64_t kMostFetchedBytes = 4 << 20;

// The whole answer to GET `target` (a path, perhaps with a query) on a connection of its own. Nothing: the
// peer cannot be reached, answers no HTTP or more than kMostFetchedBytes, or has not answered within
// `patience`.
Task<std::optional<Response>> fetch(Executor executor, Peer peer, std::string target, Headers headers,
                                    std::chrono::milliseconds patience);

// The same, for a caller without an executor: waits for the answer.
std::optional<Response> fetch_and_wait(Peer peer, std::string target, Headers headers,
                                       std::chrono::milliseconds patience);

// The same of all peers at once, one answer for each.
Task<std::vector<std::optional<Response>>> fetch_all(Executor executor, std::vector<Peer> peers,
                                                     std::string target, Headers headers,
                                                     std::chrono::milliseconds patience);

}  // namespace shoal::server
