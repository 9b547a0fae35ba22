// One connection: its requests, one after the other.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "server/http/channel.h"
#include "server/http/http_exchange.h"
#include "server/http/request_reader.h"
#include "server/http/transport_state.h"
#include "server/http/web_socket.h"

namespace shoal::server {

// Only the thread of its lane touches it.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  // `over_limit`: one too many. Its first request is answered 503, unless an operator asks.
  Connection(TransportState& state, Presence presence, Socket socket, bool over_limit);

  // Until it is closed.
  Task<> run();
  // Ends operations that have exceeded their deadline.
  void sweep(TimePoint now);
  // Closes the connection if it is idle, otherwise after the current answer.
  void drain();
  // Closes at once. True: something was going on.
  bool cut();

 private:
  enum class Phase { idle, receiving, handling, closing };
  enum class Next {
    request,
    close,  // gently: everything sent must arrive
    drop,   // the peer is gone
    reset,  // the client must see that something is missing
  };
  using Progress = RequestReader::Progress;

  Task<Next> serve_one();
  Task<Progress> receive_head();
  Task<Progress> receive_body();
  Task<bool> receive();
  // `ready`: the application's decision about the head.
  Task<Next> handle(std::optional<Response> ready);
  Task<> answer(HttpExchange& exchange, std::optional<Response>& ready);
  Task<Next> converse(Verdict verdict);
  Task<Next> answer_and_close(Response response);
  Next after(const HttpExchange& exchange) const;
  // No coroutines: g++ 12 destroys braced arguments of a co_await twice.
  Task<Next> turn_away();
  Next leave();  // the client no longer waits for an answer
  Task<Next> refuse(int status, std::string_view message);
  Task<Next> refuse(const Refusal& refusal) { return refuse(refusal.status, refusal.message); }
  std::chrono::milliseconds body_patience(TimePoint begun) const;
  AnswerManner manner(bool keep_alive);
  void record(int status, bool whole, uint64_t bytes_received, uint64_t bytes_sent);

  TransportState& state_;
  const Presence presence_;  // visiting: for one request
  const bool over_limit_;
  std::string peer_;
  Channel channel_;
  RequestReader reader_;
  Phase phase_ = Phase::receiving;
  bool first_ = true;
  TimePoint started_{};
  HttpExchange* exchange_ = nullptr;  // while an answer is made
  std::unique_ptr<ServedWebSocket> web_socket_;
};

}  // namespace shoal::server
