// The events of OpenAI's Realtime API: those of clients are read, the server's are written.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "server/access/error_style.h"
#include "server/routes/live_writer.h"
#include "server/routes/realtime_settings.h"

namespace shoal::server {

// What a client asks for.
struct RealtimeEvent {
  enum class Verb { update_session, create_item, retrieve_item, delete_item, truncate_item, respond, cancel };
  Verb verb = Verb::cancel;
  RealtimeSettings settings;  // of update_session, respond: over the session's
  RealtimeItem item;          // of create_item
  std::string item_id, response_id;
  std::optional<std::string> previous_item_id;
  int64_t content_index = 0, audio_end_ms = 0;
};

// Reads what clients send. Immutable.
class RealtimeReader {
 public:
  RealtimeReader();

  // event_id: the event's own, also of one that is wrong. Throws BodyError: not JSON; no `type`, or one that
  // is unknown or needs ears or tools; fields that do not fit.
  RealtimeEvent read(std::string_view json, const RealtimeSettings& session, std::string& event_id) const;

 private:
  RealtimeEvent read_event(const Value& value, const RealtimeSettings& session) const;

  Schema<RealtimeSettings> session_, response_;
};

// Sends the server's events, each with an id. beta: under the names of the beta, for clients that ask for it.
class RealtimeSender {
 public:
  RealtimeSender(LiveWriter& writer, bool beta, std::string request_id);

  // What it is called today; an event that the beta lacks is not sent to its clients. Throws as LiveWriter.
  Task<> send(std::string_view type, Value::Object members);
  // The event `error`: an answer to the client's event of that id, "" for none. word: its `code`, if the
  // API has one for it.
  Task<> error(const HttpError& error, const char* word, const std::string& event_id);
  std::string new_id(std::string_view kind);  // "item_...": no other connection has it

  LiveWriter& writer() const { return writer_; }
  bool beta() const { return beta_; }
  const std::string& request_id() const { return request_id_; }

 private:
  LiveWriter& writer_;
  const bool beta_;
  const std::string request_id_, connection_;
  uint64_t ids_ = 0;
};

}  // namespace shoal::server
