#include "server/http/request_reader.h"

#include <algorithm>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <utility>

#include "base/error.h"

namespace shoal::server {
namespace {

namespace http = boost::beast::http;
using boost::system::error_code;

constexpr size_t kHeadBuffer = 4 << 10;   // an idle connection holds it
constexpr size_t kBodyBuffer = 64 << 10;  // while a body comes in

}  // namespace

// Beast's grammar; what it finds goes straight into the request.
class RequestReader::Parser final : public http::basic_parser<true> {
 public:
  explicit Parser(RequestReader& reader) : reader_(reader) {
    header_limit(static_cast<uint32_t>(reader.max_head_bytes_));
    body_limit(boost::none);  // judged after the head, counted here
  }

  std::optional<Refusal> target_refusal;
  bool too_large = false, no_memory = false;

 private:
  using View = boost::beast::string_view;

  void on_request_impl(http::verb, View method, View target, int version, error_code& error) override {
    reader_.request_.method.assign(method.data(), method.size());
    reader_.version_ = version;
    target_refusal = decode_target({target.data(), target.size()}, reader_.request_);
    if (target_refusal) error = http::error::bad_target;
  }
  void on_response_impl(int, View, int, error_code&) override {}
  void on_field_impl(http::field, View name, View value, error_code&) override {
    if (reader_.stage_ != Stage::head) return;  // trailers change nothing that has been judged
    reader_.request_.headers.add({name.data(), name.size()}, {value.data(), value.size()});
  }
  void on_header_impl(error_code&) override {}
  void on_body_init_impl(const boost::optional<uint64_t>&, error_code&) override {}
  size_t on_body_impl(View bytes, error_code& error) override { return append(bytes, error); }
  void on_chunk_header_impl(uint64_t size, View, error_code& error) override {
    const uint64_t left = static_cast<uint64_t>(reader_.max_body_bytes_ - reader_.body_bytes());
    if (size <= left) return;
    too_large = true;
    error = http::error::body_limit;
  }
  size_t on_chunk_body_impl(uint64_t, View bytes, error_code& error) override { return append(bytes, error); }
  void on_finish_impl(error_code&) override {}

  size_t append(View bytes, error_code& error) {
    if (!reader_.append_body({bytes.data(), bytes.size()})) {
      no_memory = true;
      error = http::error::body_limit;
    }
    return bytes.size();
  }

  RequestReader& reader_;
};

RequestReader::RequestReader(size_t max_head_bytes, BodyBudget& budget)
    : max_head_bytes_(max_head_bytes), budget_(budget) {}

RequestReader::~RequestReader() { release_body(); }

void RequestReader::start(std::string peer) {
  release_body();
  release_buffer();
  parser_.reset();
  stage_ = Stage::head;
  request_ = {};
  request_.peer = std::move(peer);
  refusal_ = {};
  version_ = 11;
  keep_alive_ = wants_websocket_ = false;
  max_body_bytes_ = expected_ = 0;
}

// swap, here and below: assigning a short string keeps the memory of the long one.
void RequestReader::release_body() {
  std::string().swap(request_.body);
  budget_.give_back(std::exchange(charged_, 0));
}

// A connection that waits for its next request holds no more than it did for its first.
void RequestReader::release_buffer() {
  if (buffer_.size() <= kHeadBuffer) return;
  std::string rest = buffer_.substr(begin_, end_ - begin_);
  begin_ = 0;
  end_ = rest.size();
  buffer_.swap(rest);
}

std::string RequestReader::take_rest() {
  std::string rest = buffer_.substr(begin_, end_ - begin_);
  std::string().swap(buffer_);
  begin_ = end_ = 0;
  return rest;
}

std::span<char> RequestReader::space() {
  const size_t unread = end_ - begin_;
  if (unread == 0) begin_ = end_ = 0;
  if (end_ == buffer_.size() && begin_ > 0) {
    buffer_.erase(0, begin_);
    begin_ = 0;
    end_ = unread;
  }
  const size_t wanted = stage_ == Stage::body ? kBodyBuffer : kHeadBuffer;
  if (buffer_.size() < wanted) buffer_.resize(wanted);
  if (end_ == buffer_.size()) buffer_.resize(2 * buffer_.size());
  return {buffer_.data() + end_, buffer_.size() - end_};
}

void RequestReader::received(size_t bytes) {
  CHECK(bytes <= buffer_.size() - end_, "received more than there was space for");
  end_ += bytes;
}

RequestReader::Progress RequestReader::refuse(int status, std::string message) {
  stage_ = Stage::refused;
  refusal_ = {status, std::move(message)};
  return Progress::refused;
}

RequestReader::Progress RequestReader::advance() {
  switch (stage_) {
    case Stage::head:
      return read_head();
    case Stage::judged:
      return Progress::head;
    case Stage::body:
      return read_body();
    case Stage::whole:
      return Progress::whole;
    case Stage::refused:
      break;
  }
  return Progress::refused;
}

RequestReader::Progress RequestReader::read_head() {
  // Empty lines before a request are forgiven (RFC 9112 2.2).
  while (parser_ == nullptr && end_ - begin_ >= 2 && buffer_.compare(begin_, 2, "\r\n") == 0) begin_ += 2;
  if (!has_bytes() || (parser_ == nullptr && end_ - begin_ == 1 && buffer_[begin_] == '\r'))
    return Progress::more;
  if (parser_ == nullptr) parser_ = std::make_unique<Parser>(*this);

  error_code error;
  begin_ += parser_->put({buffer_.data() + begin_, end_ - begin_}, error);
  if (error == http::error::need_more) return Progress::more;
  if (parser_->target_refusal)
    return refuse(parser_->target_refusal->status, parser_->target_refusal->message);
  if (error == http::error::header_limit)
    return refuse(431, concat("the head of the request is longer than ", max_head_bytes_, " bytes"));
  if (error) return refuse(400, concat("the head of the request is malformed: ", error.message()));
  if (!parser_->is_header_done()) return Progress::more;

  keep_alive_ = parser_->keep_alive();
  if (auto refusal = check_head(request_, version_))
    return refuse(refusal->status, std::move(refusal->message));
  wants_websocket_ = request_.method == "GET" && version_ >= 11 &&
                     has_token(request_.headers, "connection", "upgrade") &&
                     has_token(request_.headers, "upgrade", "websocket");
  stage_ = Stage::judged;
  return Progress::head;
}

void RequestReader::accept_body(int64_t max_bytes) {
  CHECK(stage_ == Stage::judged, "a body is accepted once, after its head");
  max_body_bytes_ = std::max(max_bytes, int64_t{0});
  stage_ = Stage::body;
  if (parser_->is_done()) {
    stage_ = Stage::whole;
    return;
  }
  expected_ = static_cast<int64_t>(parser_->content_length().value_or(0));
  parser_->eager(true);
  if (expected_ > max_body_bytes_)
    refuse(413, concat("the body has ", expected_, " bytes, at most ", max_body_bytes_, " are taken here"));
}

bool RequestReader::wants_continue() const {
  return stage_ == Stage::body && version_ >= 11 && !has_bytes() &&
         request_.headers.find("expect") != nullptr;
}

// A known length is not reserved in advance: a client that announces much and sends nothing must cost
// nothing.
bool RequestReader::append_body(std::string_view bytes) {
  std::string& body = request_.body;
  const size_t size = body.size() + bytes.size();
  if (size > static_cast<size_t>(charged_)) {
    const int64_t most = expected_ > 0 ? expected_ : max_body_bytes_;
    const int64_t wanted = std::max(static_cast<int64_t>(size), std::min(2 * charged_, most));
    if (!budget_.take(wanted - charged_)) return false;
    charged_ = wanted;
    body.reserve(static_cast<size_t>(wanted));
  }
  body.append(bytes);
  return true;
}

RequestReader::Progress RequestReader::refuse_body(const std::string& problem, int status) {
  release_body();
  return refuse(status, problem);
}

RequestReader::Progress RequestReader::read_body() {
  error_code error;
  while (has_bytes() && !error && !parser_->is_done())
    begin_ += parser_->put({buffer_.data() + begin_, end_ - begin_}, error);
  if (parser_->too_large)
    return refuse_body(concat("the body has more than the ", max_body_bytes_, " bytes that are taken here"),
                       413);
  if (parser_->no_memory) return refuse_body("there is no memory left for bodies at the moment", 503);
  if (error && error != http::error::need_more)
    return refuse_body(concat("the body of the request is malformed: ", error.message()), 400);
  if (parser_->is_done()) {
    stage_ = Stage::whole;
    return Progress::whole;
  }
  if (end_ - begin_ >= max_head_bytes_)
    return refuse_body(
        concat("a line of a chunk, or the trailers, are longer than ", max_head_bytes_, " bytes"), 431);
  return Progress::more;
}

}  // namespace shoal::server
