#include "server/access/offered_protocols.h"

#include "base/base64.h"
#include "server/body/media_type.h"
#include "server/body/value.h"

namespace shoal::server {
namespace {

std::optional<std::string> key_in(std::string_view protocol) {
  for (const std::string_view prefix : {kKeyPrefix, kRealtimeKeyPrefix})
    if (protocol.starts_with(prefix)) return std::string(protocol.substr(prefix.size()));
  if (!protocol.starts_with(kBase64KeyPrefix)) return std::nullopt;
  return from_base64(protocol.substr(kBase64KeyPrefix.size())).value_or("");
}

}  // namespace

OfferedProtocols offered_protocols(const Headers& headers) {
  OfferedProtocols offered;
  const auto look_at = [&](std::string_view protocol) {
    if (protocol == kLiveProtocol) offered.live = true;
    if (protocol == kRealtimeProtocol) offered.realtime = true;
    if (protocol == kRealtimeBeta) offered.realtime_beta = true;
    if (!offered.key) offered.key = key_in(protocol);
    return false;
  };
  for (const auto& [name, value] : headers)
    if (equal_ignoring_case(name, "sec-websocket-protocol")) any_part(value, look_at);
  return offered;
}

}  // namespace shoal::server
