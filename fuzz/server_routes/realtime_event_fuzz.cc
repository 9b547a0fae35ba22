// Arbitrary bytes as an event of OpenAI's Realtime API, and its item in a conversation.
#include <cstdint>
#include <cstdlib>

#include "server/routes/realtime_events.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace shoal::server;
  static const RealtimeReader reader;
  std::string id;
  try {
    RealtimeEvent event = reader.read({reinterpret_cast<const char*>(data), size}, {}, id);
    if (id.size() > 512 || event.settings.rate_hz < 8000) std::abort();
    read_json(write_json(session_value(event.settings, id, size % 2 == 0)));
    RealtimeConversation conversation;
    const std::string text = event.item.text();
    event.item.id = "a";
    conversation.add(event.item, event.previous_item_id);
    if (conversation.get("a", "").text() != text) std::abort();
    read_json(write_json(item_value(event.item)));
  } catch (const BodyError&) {
  }
  return 0;
}
