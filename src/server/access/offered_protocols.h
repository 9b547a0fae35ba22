// The subprotocols that a WebSocket client offers in Sec-WebSocket-Protocol: the only header that a page in a
// browser can set.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "server/http/message.h"

namespace shoal::server {

// The protocol of /v1/audio/stream (docs/LIVE.md).
constexpr std::string_view kLiveProtocol = "shoal";
// Of OpenAI's Realtime API, as its package offers them, with the prefix of a key.
constexpr std::string_view kRealtimeProtocol = "realtime", kRealtimeBeta = "openai-beta.realtime-v1";
constexpr std::string_view kRealtimeKeyPrefix = "openai-insecure-api-key.";
// Prefix of an API key. A protocol is a token (RFC 6455 4.1): a key with other characters is sent in
// base64url.
constexpr std::string_view kKeyPrefix = "shoal-api-key.", kBase64KeyPrefix = "shoal-api-key-base64url.";

struct OfferedProtocols {
  bool live = false;  // kLiveProtocol is among them
  bool realtime = false, realtime_beta = false;
  std::optional<std::string> key;  // the first key; "" if it is invalid base64url
};

OfferedProtocols offered_protocols(const Headers& headers);

}  // namespace shoal::server
