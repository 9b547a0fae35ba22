// Arbitrary bytes as a message of Fish Audio's WebSocket, as a form about a voice, and as the note of one.
#include <cstdint>
#include <cstdlib>

#include "server/routes/fish_live.h"
#include "server/routes/fish_models.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace shoal;
  using namespace shoal::server;
  static const FishReader reader{ServerConfig()};
  static const Schema<FishModel> create = fish_create_schema(ServerConfig()), patch = fish_patch_schema();
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const FishModel noted = read_fish_note(bytes);
  if (write_fish_note(read_fish_note(write_fish_note(noted))) != write_fish_note(noted)) std::abort();
  try {
    switch (data[0] % 4) {
      case 0: {
        const FishMessage message = reader.read(bytes);
        if (message.verb != FishMessage::Verb::text && !message.text.empty()) std::abort();
        break;
      }
      case 1:
        patch.read(read_urlencoded(bytes));
        break;
      case 2: {
        const FishModel body = create.read(read_urlencoded(bytes));
        if (clips_of(body).size() != body.voices.size()) std::abort();
        break;
      }
      default:
        create.read(read_form(bytes, "b"));
    }
  } catch (const BodyError&) {
  }
  return 0;
}
