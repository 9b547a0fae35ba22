// Items of a conversation in OpenAI's Realtime API, and the conversation.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/body/value.h"

namespace shoal::server {

// An error that the API has a word for, its `code`.
class RealtimeError : public BodyError {
 public:
  RealtimeError(const char* word, std::string where, std::string message)
      : BodyError(ErrorCode::invalid_argument, std::move(where), std::move(message)), word_(word) {}
  const char* word() const { return word_; }

 private:
  const char* const word_;
};

struct RealtimeItem {
  struct Part {
    std::string type;  // input_text, output_text, output_audio; text, audio: of the beta
    std::string text;  // its transcript, of sound
  };
  std::string id, role, status = "completed";
  std::vector<Part> content;
  bool spoken = false;  // by a response
  double sound_s = 0;   // of a response's
  bool truncated = false;

  bool waits() const { return role == "user" && !spoken; }
  std::string text() const;  // of all parts, in lines
  size_t bytes() const;
};

// Reads a message of texts. Throws BodyError: sound, pictures, calls of tools, and texts of more than
// kMostItemBytes are refused by name.
RealtimeItem read_realtime_item(const Value& value, const std::string& where);
Value item_value(const RealtimeItem& item);

// An item of a response's input: of its own, or, with reference, the id of one of the conversation.
struct RealtimeInput {
  std::string reference;
  RealtimeItem item;
};
std::vector<RealtimeInput> read_realtime_input(const Value& value, const std::string& where);

constexpr size_t kMostItemBytes = size_t{64} << 10;  // what may wait to be spoken

class RealtimeConversation {
 public:
  // After the item `previous`, at the end without one, at the start with "root". The oldest items are
  // forgotten once there are kMostItems or kMostBytes, except those that wait to be spoken or are being
  // spoken. Returns the id of the item before it, "" for none. Throws RealtimeError: the id is taken, or
  // `previous` is not there; Error(resource_exhausted): too much waits.
  std::string add(RealtimeItem item, const std::optional<std::string>& previous = std::nullopt);
  // Throws RealtimeError(word) with the name of the field.
  RealtimeItem& get(const std::string& id, const char* word);
  RealtimeItem* find(const std::string& id);
  void remove(const std::string& id);
  // What the user said and no response has spoken.
  std::vector<RealtimeItem*> waiting();

  static constexpr size_t kMostItems = 256, kMostBytes = size_t{1} << 20;

 private:
  void make_room(size_t bytes);

  std::deque<RealtimeItem> items_;
};

}  // namespace shoal::server
