#include "server/http/request_reader.h"

#include <algorithm>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <utility>

#include "base/error.h"
#include "base/printable.h"

namespace shoal::server {
namespace {

namespace http = boost::beast::http;
using boost::system::error_code;

constexpr size_t kHeadBuffer = 4 << 10;   // an idle connection holds it
constexpr size_t kBodyBuffer = 64 << 10;  // while a body comes in

Refusal too_large(int64_t max_body_bytes) {
  return {413, concat("the body has more than the ", max_body_bytes, " bytes that are taken here")};
}

// RFC 9112 5.2: what senders must not send, and readers before us may have read otherwise. Lines that belong
// together are consumed together.
bool has_fold(std::string_view lines) {
  return lines.find("\r\n ") != std::string_view::npos || lines.find("\r\n\t") != std::string_view::npos;
}

}  // namespace

// Beast parses the grammar; its callbacks fill the request directly.
class RequestReader::Parser final : public http::basic_parser<true> {
 public:
  explicit Parser(RequestReader& reader) : reader_(reader) {
    header_limit(static_cast<uint32_t>(reader.max_head_bytes_));
    body_limit(boost::none);  // judged after the head, counted here
  }

  std::optional<Refusal> target_refusal, body_refusal;

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
    if (reader_.stage_ != Stage::head) return;  // trailers do not change what has been checked
    reader_.request_.headers.add({name.data(), name.size()}, {value.data(), value.size()});
  }
  void on_header_impl(error_code&) override {}
  void on_body_init_impl(const boost::optional<uint64_t>&, error_code&) override {}
  size_t on_body_impl(View bytes, error_code& error) override { return append(bytes, error); }
  void on_chunk_header_impl(uint64_t size, View, error_code& error) override {
    const uint64_t left = static_cast<uint64_t>(reader_.max_body_bytes_ - reader_.received_body_bytes());
    if (size <= left) return;
    body_refusal = too_large(reader_.max_body_bytes_);
    error = http::error::body_limit;
  }
  size_t on_chunk_body_impl(uint64_t, View bytes, error_code& error) override { return append(bytes, error); }
  void on_finish_impl(error_code&) override {}

  size_t append(View bytes, error_code& error) {
    body_refusal = reader_.receive_body({bytes.data(), bytes.size()});
    if (body_refusal) error = http::error::body_limit;
    return bytes.size();
  }

  RequestReader& reader_;
};

RequestReader::RequestReader(size_t max_head_bytes, BodyBudget& budget)
    : max_head_bytes_(max_head_bytes), share_(budget) {}

RequestReader::~RequestReader() = default;

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
  max_body_bytes_ = expected_ = received_body_bytes_ = 0;
}

// swap, here and below: assigning a short string keeps the memory of the long one.
void RequestReader::release_body() {
  std::string().swap(request_.body);
  share_.release();
  decoder_.reset();
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
  const std::string_view unread(buffer_.data() + begin_, end_ - begin_);
  const size_t used = parser_->put({unread.data(), unread.size()}, error);
  begin_ += used;
  if (has_fold(unread.substr(0, used)))
    return refuse(400, "the head of the request is malformed: a field goes on in the next line (obs-fold)");
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
  if (!choose_decoder()) return;
  expected_ = static_cast<int64_t>(parser_->content_length().value_or(0));
  parser_->eager(true);
  if (expected_ > max_body_bytes_)
    refuse(413, concat("the body has ", expected_, " bytes, at most ", max_body_bytes_, " are taken here"));
}

bool RequestReader::wants_continue() const {
  return stage_ == Stage::body && version_ >= 11 && !has_bytes() &&
         request_.headers.find("expect") != nullptr;
}

bool RequestReader::has_body() const { return parser_ != nullptr && !parser_->is_done(); }

// False: refused.
bool RequestReader::choose_decoder() {
  std::string codings;
  for (const auto& [name, value] : request_.headers) {
    if (!equal_ignoring_case(name, "content-encoding") || value.empty()) continue;
    codings += (codings.empty() ? "" : ", ") + value;
  }
  if (codings.empty() || equal_ignoring_case(codings, "identity")) return true;
  const auto coding = BodyDecoder::coding_of(codings);
  if (coding)
    decoder_ = std::make_unique<BodyDecoder>(*coding);
  else
    refuse(415, concat("Content-Encoding: expected ", BodyDecoder::kNames, " or none, got \"",
                       printable(codings, 40), '"'));
  return coding.has_value();
}

std::optional<Refusal> RequestReader::receive_body(std::string_view bytes) {
  received_body_bytes_ += static_cast<int64_t>(bytes.size());
  return decoder_ ? decode_body(bytes) : append_body(bytes);
}

std::optional<Refusal> RequestReader::decode_body(std::string_view bytes) {
  std::optional<Refusal> refusal;
  const auto take = [&](std::string_view piece) {
    refusal = append_body(piece);
    return !refusal;
  };
  switch (decoder_->feed(bytes, take)) {
    case BodyDecoder::Result::good:
    case BodyDecoder::Result::stopped:
      return refusal;
    case BodyDecoder::Result::malformed:
      return Refusal{400, "the body is not what Content-Encoding says it is"};
    case BodyDecoder::Result::too_dense:
      break;
  }
  return Refusal{413, concat("the body grows more than ", BodyDecoder::kMostFactor,
                             " times when it is decompressed, which no text or sound does")};
}

// A declared length is not reserved in advance: a client that declares much and sends nothing must cost
// nothing.
std::optional<Refusal> RequestReader::append_body(std::string_view bytes) {
  std::string& body = request_.body;
  const auto size = static_cast<int64_t>(body.size() + bytes.size());
  if (size > max_body_bytes_) return too_large(max_body_bytes_);
  const int64_t most = expected_ > 0 && !decoder_ ? expected_ : max_body_bytes_;
  if (!share_.hold(size, most)) return Refusal{503, "there is no memory left for bodies at the moment"};
  body.reserve(static_cast<size_t>(share_.held()));
  body.append(bytes);
  return std::nullopt;
}

RequestReader::Progress RequestReader::refuse_body(const std::string& problem, int status) {
  release_body();
  return refuse(status, problem);
}

RequestReader::Progress RequestReader::read_body() {
  error_code error;
  while (has_bytes() && !error && !parser_->is_done())
    begin_ += parser_->put({buffer_.data() + begin_, end_ - begin_}, error);
  if (parser_->body_refusal) {
    const Refusal refusal = *parser_->body_refusal;
    return refuse_body(refusal.message, refusal.status);
  }
  if (error && error != http::error::need_more)
    return refuse_body(concat("the body of the request is malformed: ", error.message()), 400);
  if (parser_->is_done()) {
    if (decoder_ && received_body_bytes_ > 0 && !decoder_->ended())
      return refuse_body("the compressed body is not whole", 400);
    decoder_.reset();
    stage_ = Stage::whole;
    return Progress::whole;
  }
  if (end_ - begin_ >= max_head_bytes_)
    return refuse_body(
        concat("a line of a chunk, or the trailers, are longer than ", max_head_bytes_, " bytes"), 431);
  return Progress::more;
}

}  // namespace shoal::server
