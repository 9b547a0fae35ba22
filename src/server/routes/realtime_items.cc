#include "server/routes/realtime_items.h"

#include <algorithm>

#include "base/error.h"
#include "server/body/schema.h"

namespace shoal::server {
namespace {

constexpr size_t kLongestItemId = 128;
constexpr int64_t kMostParts = 64;
const char* const kTextOnly = "this server speaks texts and hears and sees nothing; send input_text";

struct WirePart {
  std::string type, text, transcript, detail;
};
struct WireItem {
  std::string type = "message", id, object, role, status = "completed", phase;
  std::vector<RealtimeItem::Part> content;
};

// In a message of `role`.
RealtimeItem::Part read_part(const Value& value, const std::string& where, const std::string& role) {
  static const Schema<WirePart> schema = {text("type", &WirePart::type, "of the part").required(),
                                          text("text", &WirePart::text, "of input_text, output_text"),
                                          text("transcript", &WirePart::transcript, "of output_audio"),
                                          refused<WirePart>("audio", "string", kTextOnly),
                                          refused<WirePart>("image_url", "string", kTextOnly),
                                          text("detail", &WirePart::detail, "of pictures")};
  const Value* type = read_object(value, where).empty() ? nullptr : value.find("type");
  const std::string* word = type ? type->as<std::string>() : nullptr;
  if (word && (*word == "input_audio" || *word == "input_image" || (*word == "audio" && role != "assistant")))
    throw BodyError(ErrorCode::unsupported, where + ".type", kTextOnly);
  WirePart part = schema.read(value, where);
  const std::vector<std::string> words =
      role == "assistant" ? std::vector<std::string>{"output_text", "output_audio", "text", "audio"}
                          : std::vector<std::string>{"input_text", "text"};
  read_choice({part.type}, where + ".type", words);
  const bool sound = part.type.ends_with("audio");
  std::string& said = sound ? part.transcript : part.text;
  if (!sound && !value.find("text")) fail_missing(where, "text");
  if (said.size() > kMostItemBytes)
    throw BodyError(ErrorCode::too_large, where + ".text",
                    concat("expected at most ", kMostItemBytes, " bytes, got ", said.size()));
  return {.type = std::move(part.type), .text = std::move(said)};
}

const Schema<WireItem>& wire_item_schema() {
  static const std::string no_tools = "this server calls no tools; send messages of text";
  static const Schema<WireItem> schema = {
      text("type", &WireItem::type, "message"),
      text("id", &WireItem::id, "at most 128 bytes; made here without one"),
      text("object", &WireItem::object, "realtime.item"),
      choice("role", &WireItem::role, {"user", "assistant", "system"}, "who says it").required(),
      choice("status", &WireItem::status, {"completed", "incomplete", "in_progress"}, "no effect"),
      text("phase", &WireItem::phase, "no effect"),
      Field<WireItem>{{.name = "content", .type = "array", .help = "its parts"},
                      [](const Value& value, const std::string& where, WireItem&) {
                        read_array(value, where, kMostParts);
                      }}
          .required()};
  return schema;
}

Value text_part(const std::string& type, const std::string& text) {
  const bool sound = type.ends_with("audio");
  return {Value::Object{{"type", {type}}, {sound ? "transcript" : "text", {text}}}};
}

std::string item_type_of(const Value& value, const std::string& where) {
  read_object(value, where);
  const Value* type = value.find("type");
  return type && !type->is_null() ? read_text(*type, where + ".type") : "message";
}

std::string read_item_id(const Value& value, const std::string& where) {
  const std::string& id = read_text(value, where);
  if (id.size() > kLongestItemId)
    throw BodyError(ErrorCode::invalid_argument, where,
                    concat("expected at most ", kLongestItemId, " bytes, got ", id.size()));
  return id;
}

}  // namespace

std::string RealtimeItem::text() const {
  std::string all;
  for (const Part& part : content) all += (all.empty() ? "" : "\n") + part.text;
  return all;
}

size_t RealtimeItem::bytes() const {
  size_t bytes = id.size();
  for (const Part& part : content) bytes += part.text.size();
  return bytes;
}

RealtimeItem read_realtime_item(const Value& value, const std::string& where) {
  const std::string type = item_type_of(value, where);
  if (type.starts_with("function_call") || type.starts_with("mcp_"))
    throw BodyError(ErrorCode::unsupported, where + ".type",
                    "this server calls no tools; send messages of text");
  read_choice({type}, where + ".type", {"message"});
  WireItem read = wire_item_schema().read(value, where);
  RealtimeItem item{.id = read_item_id({read.id}, where + ".id"), .role = std::move(read.role)};
  const Value::Array& parts = *value.find("content")->as<Value::Array>();
  for (size_t i = 0; i < parts.size(); ++i)
    item.content.push_back(read_part(parts[i], item_path(where + ".content", i), item.role));
  if (item.bytes() > kMostItemBytes + kLongestItemId)
    throw BodyError(ErrorCode::too_large, where + ".content",
                    concat("expected at most ", kMostItemBytes, " bytes of text, got ", item.bytes()));
  return item;
}

Value item_value(const RealtimeItem& item) {
  Value::Array content;
  for (const RealtimeItem::Part& part : item.content) content.push_back(text_part(part.type, part.text));
  return {Value::Object{{"id", {item.id}},
                        {"object", {std::string("realtime.item")}},
                        {"type", {std::string("message")}},
                        {"status", {item.status}},
                        {"role", {item.role}},
                        {"content", {std::move(content)}}}};
}

std::vector<RealtimeInput> read_realtime_input(const Value& value, const std::string& where) {
  std::vector<RealtimeInput> input;
  for (const Value& one : read_array(value, where, RealtimeConversation::kMostItems)) {
    const std::string place = item_path(where, input.size());
    if (item_type_of(one, place) != "item_reference") {
      input.push_back({.reference = {}, .item = read_realtime_item(one, place)});
      continue;
    }
    const Value* id = one.find("id");
    if (!id || id->is_null()) fail_missing(place, "id");
    input.push_back({.reference = read_item_id(*id, place + ".id"), .item = {}});
  }
  return input;
}

void RealtimeConversation::make_room(size_t bytes) {
  size_t total = bytes;
  for (const RealtimeItem& item : items_) total += item.bytes();
  const auto may_go = [](const RealtimeItem& item) { return !item.waits() && item.status != "in_progress"; };
  while (items_.size() >= kMostItems || total > kMostBytes) {
    const auto oldest = std::ranges::find_if(items_, may_go);
    if (oldest == items_.end())
      fail(ErrorCode::resource_exhausted, "item: ", items_.size(),
           " items wait to be spoken; create a response, or delete some");
    total -= oldest->bytes();
    items_.erase(oldest);
  }
}

std::string RealtimeConversation::add(RealtimeItem item, const std::optional<std::string>& previous) {
  if (find(item.id))
    throw RealtimeError("item_create_duplicate_id", "item.id", "the conversation has an item of this id");
  if (previous && *previous != "root" && !find(*previous))
    throw RealtimeError("item_create_invalid_previous_item_id", "previous_item_id",
                        "the conversation has no item of this id");
  make_room(item.bytes());
  auto at = items_.end();
  if (previous && *previous == "root") at = items_.begin();
  if (previous && *previous != "root") {
    at = std::ranges::find(items_, *previous, &RealtimeItem::id);
    if (at != items_.end()) ++at;  // else it has just been forgotten
  }
  std::string before = at == items_.begin() ? "" : std::prev(at)->id;
  items_.insert(at, std::move(item));
  return before;
}

RealtimeItem* RealtimeConversation::find(const std::string& id) {
  const auto found = std::ranges::find(items_, id, &RealtimeItem::id);
  return found == items_.end() ? nullptr : &*found;
}

RealtimeItem& RealtimeConversation::get(const std::string& id, const char* word) {
  RealtimeItem* item = find(id);
  if (!item) throw RealtimeError(word, "item_id", "the conversation has no item of this id");
  return *item;
}

void RealtimeConversation::remove(const std::string& id) {
  std::erase_if(items_, [&](const RealtimeItem& item) { return item.id == id; });
}

std::vector<RealtimeItem*> RealtimeConversation::waiting() {
  std::vector<RealtimeItem*> waiting;
  for (RealtimeItem& item : items_)
    if (item.waits()) waiting.push_back(&item);
  return waiting;
}

}  // namespace shoal::server
