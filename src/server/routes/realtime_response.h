// A response of OpenAI's Realtime API: one utterance, told in the API's events.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "server/routes/live_utterance.h"
#include "server/routes/realtime_events.h"

namespace shoal::server {

class RealtimeResponse final : public LiveListener {
 public:
  // conversation: null for one beside it. All outlive it. characters: of what it speaks.
  RealtimeResponse(RealtimeSender& sender, RealtimeConversation* conversation,
                   const RealtimeSettings& settings, std::string conversation_id, int64_t characters);

  const std::string& id() const { return id_; }
  bool in_conversation() const { return conversation_ != nullptr; }
  bool stopping() const { return stopping_; }

  void speak_with(std::unique_ptr<LiveUtterance> utterance) { utterance_ = std::move(utterance); }
  LiveUtterance& utterance() { return *utterance_; }
  void cancel();

  // Tells that it begins, and, to its end, what becomes of it. Throw as LiveWriter.
  Task<> begin();
  Task<> segment(int64_t index, const std::string& text, double at_s) override;
  Task<> sound(std::string bytes, std::vector<SpokenWord> words) override;
  Task<> failed(const HttpError& error) override;
  Task<> done(const LiveDone& done) override;

 private:
  // Values are built outside of coroutines, because of g++ 12.
  Value::Object at_part() const;
  Value response() const;
  Value usage() const;
  Value part() const;
  void add_state(Value::Object& members) const;
  Task<> tell_response(const char* type);
  Task<> tell_item(const char* type);
  Task<> tell_in_conversation(const char* type);
  Task<> tell_part(const char* type);
  Task<> tell_delta(const char* type, std::string delta);
  Task<> tell_end(const char* type, const char* member);
  void settle(const LiveDone& done);
  void keep_in_conversation();
  double seconds() const { return static_cast<double>(bytes_) / bytes_per_second_; }
  bool is_cut(std::string& bytes);

  RealtimeSender& sender_;
  RealtimeConversation* const conversation_;
  const RealtimeSettings settings_;
  const std::string conversation_id_, id_;
  const int64_t characters_;
  const int bytes_per_second_;
  std::unique_ptr<LiveUtterance> utterance_;
  RealtimeItem item_;
  std::string previous_id_, status_ = "in_progress";
  std::optional<HttpError> failure_;
  std::vector<std::string> warnings_;
  size_t bytes_ = 0;  // of sound that was sent
  bool stopping_ = false, cut_ = false;
};

}  // namespace shoal::server
