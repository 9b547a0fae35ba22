// What whoever stands in front of servers needs to know of their routes.
#pragma once

#include <string>
#include <vector>

#include "shoal/server_config.h"

namespace shoal::server {

// Paths of POST whose requests may be sent again when a server dies before it answers: asking twice is as
// good as once.
std::vector<std::string> repeatable_paths(const ServerConfig& config);

// How the routes that keep a model busy tell errors, for whoever answers in a server's place.
struct SpeechForm {
  std::vector<std::string> paths;
  std::string full, absent;  // JSON of 429 `why_full`, and of 503
};
// `request_id` stands in them as it is.
std::vector<SpeechForm> speech_forms(const ServerConfig& config, const std::string& why_full,
                                     const std::string& request_id);

}  // namespace shoal::server
