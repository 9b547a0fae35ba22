// The answer to one request, on its connection.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "server/http/channel.h"
#include "server/http/disconnect_watcher.h"
#include "server/http/exchange.h"
#include "server/http/response_head.h"

namespace shoal::server {

// What of the request shapes its answer.
struct AnswerManner {
  bool head_only = false;  // HEAD
  bool http_1_0 = false;
  bool keep_alive = true;
};

class HttpExchange final : public Exchange {
 public:
  // All must outlive it. `draining`: the answer says that the connection closes.
  HttpExchange(Channel& channel, const Request& request, AnswerManner manner,
               const std::atomic<bool>& draining);
  ~HttpExchange() override;

  const Request& request() const override { return request_; }
  Executor executor() const override { return channel_.socket().get_executor(); }
  Task<> respond(Response response) override;
  Task<> begin(Response head) override;
  Task<> write(std::string_view bytes) override;
  Task<> end() override;
  bool begun() const override { return status_ != 0; }
  void on_gone(std::function<void()> notify) override;

  // For the connection.
  void client_left();
  void stop_watching();
  int status() const { return status_; }
  uint64_t bytes_sent() const { return bytes_sent_; }
  bool whole() const { return ended_; }
  bool gone() const { return gone_; }
  bool keep_alive() const { return ended_ && framing_.keep_alive; }
  // An answer cut short is only seen to be so when the connection is reset.
  bool ends_with_connection() const { return begun() && framing_.end == BodyEnd::close; }

 private:
  std::string begin_head(const Response& response, BodyEnd end);
  Task<> send(std::string_view prefix, std::string_view body, std::string_view suffix);
  void require_client() const;
  void watch();

  Channel& channel_;
  const Request& request_;
  const AnswerManner manner_;
  const std::atomic<bool>& draining_;
  AnswerFraming framing_;
  int status_ = 0;
  uint64_t bytes_sent_ = 0;
  bool body_allowed_ = true;
  bool ended_ = false, gone_ = false, too_slow_ = false;
  std::function<void()> notify_;
  std::shared_ptr<DisconnectWatcher> watcher_;
};

}  // namespace shoal::server
