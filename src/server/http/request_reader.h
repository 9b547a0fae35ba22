// The bytes of a connection as requests, one after the other. Knows no socket.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "server/http/body_budget.h"
#include "server/http/body_decoder.h"
#include "server/http/head_rules.h"
#include "server/http/message.h"

namespace shoal::server {

// space() and received() bring bytes, advance() reads them: to the end of the head, then, after
// accept_body(), to the end of the body. Bytes after it are kept for the next request.
class RequestReader {
 public:
  enum class Progress {
    more,     // bytes are wanted
    head,     // request() has everything but its body: accept_body() is due
    whole,    // the body is there
    refused,  // refusal() says why; later bytes cannot be read
  };

  // A line of a chunk and the trailers are held to max_head_bytes too.
  RequestReader(size_t max_head_bytes, BodyBudget& budget);
  ~RequestReader();
  RequestReader(const RequestReader&) = delete;
  RequestReader& operator=(const RequestReader&) = delete;

  // Forgets the last request, and gives its memory back.
  void start(std::string peer);
  // Where the next bytes may be put; never empty. Valid until the next call of anything here.
  std::span<char> space();
  void received(size_t bytes);
  // Bytes that no request has used yet.
  bool has_bytes() const { return begin_ < end_; }
  // The head, once there, is judged by its owner in between.
  Progress advance();
  // A longer body is refused with 413, one that does not fit in the budget with 503, one with an unknown
  // coding with 415. Content-Encoding is decoded: limit and budget apply to the decoded body.
  void accept_body(int64_t max_bytes);
  // Valid once the head is there.
  bool has_body() const;

  Request& request() { return request_; }
  const Refusal& refusal() const { return refusal_; }
  bool http_1_0() const { return version_ < 11; }
  bool keep_alive() const { return keep_alive_; }
  // "Expect: 100-continue", of a body that has not begun to come.
  bool wants_continue() const;
  bool wants_websocket() const { return wants_websocket_; }
  int64_t body_bytes() const { return static_cast<int64_t>(request_.body.size()); }
  // Before Content-Encoding is undone, without the framing of chunks.
  int64_t received_body_bytes() const { return received_body_bytes_; }
  // Bytes after the head, for the next reader of the connection.
  std::string take_rest();

 private:
  class Parser;
  enum class Stage { head, judged, body, whole, refused };

  Progress refuse(int status, std::string message);
  Progress read_head();
  Progress read_body();
  Progress refuse_body(const std::string& problem, int status);
  std::optional<Refusal> receive_body(std::string_view bytes);
  std::optional<Refusal> decode_body(std::string_view bytes);
  std::optional<Refusal> append_body(std::string_view bytes);
  bool choose_decoder();
  void release_body();
  void release_buffer();

  const size_t max_head_bytes_;
  std::string buffer_;  // [begin_, end_) is unread
  size_t begin_ = 0, end_ = 0;
  std::unique_ptr<Parser> parser_;
  Stage stage_ = Stage::head;
  Request request_;
  Refusal refusal_;
  int version_ = 11;
  bool keep_alive_ = false, wants_websocket_ = false;
  BodyShare share_;
  std::unique_ptr<BodyDecoder> decoder_;  // of a body with a Content-Encoding
  int64_t max_body_bytes_ = 0, received_body_bytes_ = 0;
  int64_t expected_ = 0;  // Content-Length
};

}  // namespace shoal::server
