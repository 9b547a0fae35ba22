// Arbitrary bytes as a message of ElevenLabs' WebSockets, and its text and words as characters with times.
#include <cstdint>
#include <cstdlib>

#include "server/routes/eleven_messages.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace shoal::server;
  static const Schema<ElevenMessage> schemas[] = {eleven_message_schema(false), eleven_message_schema(true)};
  if (size == 0) return 0;
  const std::string_view json(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    const ElevenMessage message = schemas[data[0] & 1].read(read_json(json));
    const std::string text = message.words.value_or("");
    CharacterTimes times(text);
    std::string given;
    const auto add = [&](const TimedCharacters& more) {
      for (const std::string& character : more.characters) given += character;
    };
    add(times.take({{message.context_id, 0.5, message.speed}, {"a", 1, 2}}));
    add(times.rest(3));
    if (given != text) std::abort();
  } catch (const BodyError&) {
  }
  return 0;
}
