// A connection of OpenAI's Realtime API, speech out only: a conversation of texts, and responses that speak
// them.
#pragma once

#include <chrono>
#include <list>
#include <memory>

#include "server/routes/live_tasks.h"
#include "server/routes/realtime_response.h"
#include "server/routes/services.h"

namespace shoal::server {

struct RealtimeQuery {
  std::string model, intent;
};
Schema<RealtimeQuery> realtime_query_schema();

class RealtimeSession {
 public:
  // All outlive it.
  RealtimeSession(Services& services, WebSocket& socket, const Schema<RealtimeQuery>& query,
                  const RealtimeReader& reader);

  // To the end of the connection, and of everything that was started for it. Throws as the socket does.
  Task<> run();

 private:
  using Clock = std::chrono::steady_clock;
  using Responses = std::list<std::unique_ptr<RealtimeResponse>>;
  // An error as the client is told of it.
  struct Refusal {
    HttpError error;
    const char* word = nullptr;
    std::string event_id;
  };

  Task<> begin();
  Task<> converse();
  Task<> take(const WebSocket::Message& message, std::string& event_id);
  Task<> obey(RealtimeEvent event);
  Task<> update(RealtimeSettings settings);
  Task<> create_item(RealtimeEvent event);
  Task<> retrieve_item(const RealtimeEvent& event);
  Task<> delete_item(const RealtimeEvent& event);
  Task<> truncate_item(const RealtimeEvent& event);
  Task<> respond(RealtimeSettings settings);
  void cancel(const std::string& response_id);

  Task<LiveSettings> prepare(const RealtimeSettings& settings, const char* where);
  std::vector<std::string> words_of(const RealtimeSettings& settings);
  void mark_spoken(const RealtimeSettings& settings);
  RealtimeResponse* active();
  Responses::iterator add(const RealtimeSettings& settings, LiveSettings live,
                          const std::vector<std::string>& words);
  Task<> speak(Responses::iterator response);
  Task<> tell_session(const char* type);
  Task<> tell_of(const char* type, const RealtimeItem& item, const std::string* previous);
  Refusal refusal_of(const Error& error, std::string event_id) const;
  Task<> tell(Refusal refusal);
  Task<> watch();
  Task<> leave(uint16_t code, Refusal why);

  Services& services_;
  WebSocket& socket_;
  const Schema<RealtimeQuery>& query_;
  const RealtimeReader& reader_;
  LiveWriter writer_;
  RealtimeSender sender_;
  LiveTasks tasks_;
  const std::string session_id_, conversation_id_;
  RealtimeSettings settings_;
  RealtimeConversation conversation_;
  Responses responses_;
  bool leaving_ = false;
  Clock::time_point last_used_ = Clock::now();
};

}  // namespace shoal::server
