#include "server/wyoming/requests.h"

#include "server/body/schema.h"

namespace shoal::server {
namespace {

using Asked = WyomingRequest;

struct Piece {
  std::string text;
};

Field<Asked> voice_field() {
  static const Schema<WyomingVoice> voice{
      text("name", &WyomingVoice::name, "a voice of info"),
      text("language", &WyomingVoice::language, "without a name: of the voice"),
      text("speaker", &WyomingVoice::speaker, "voices have one")};
  FieldDoc doc{.name = "voice", .type = "object", .help = "who speaks", .items = voice.docs()};
  return {std::move(doc), [](const Value& value, const std::string& where, Asked& into) {
            into.voice = voice.read(value, where);
          }};
}

// Of conversations, for programs that answer.
Field<Asked> context_field() {
  FieldDoc doc{.name = "context", .type = "object", .help = "no effect"};
  return {std::move(doc),
          [](const Value& value, const std::string& where, Asked&) { read_object(value, where); }};
}

}  // namespace

WyomingRequest read_synthesize(const Value& data) {
  static const Schema<Asked> schema{text("text", &Asked::text, "what to speak").required(), voice_field(),
                                    context_field()};
  return schema.read(data);
}

WyomingRequest read_synthesize_start(const Value& data) {
  static const Schema<Asked> schema{voice_field(), context_field()};
  return schema.read(data);
}

std::string read_synthesize_chunk(const Value& data) {
  static const Schema<Piece> schema{text("text", &Piece::text, "the next piece").required()};
  return schema.read(data).text;
}

std::string read_ping(const Value& data) {
  static const Schema<Piece> schema{text("text", &Piece::text, "comes back")};
  return schema.read(data).text;
}

}  // namespace shoal::server
