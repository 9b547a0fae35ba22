#include "server/http/connection.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/log.h"

namespace shoal::server {
namespace {

// Time for a client to notice that nothing more will be read.
constexpr std::chrono::milliseconds kLinger{3000};
// For one connection too many, or one during a drain, to send its request.
constexpr std::chrono::milliseconds kRefusalPatience{1000};
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
// This much of a body must arrive within body_timeout: a byte now and then is no progress.
constexpr int64_t kProgressBytes = 1 << 10;

std::string address_of(const Socket& socket) {
  boost::system::error_code error;
  const auto endpoint = socket.remote_endpoint(error);
  return error ? "" : endpoint.address().to_string();
}

// One more of something, for as long as this lives.
class Counted {
 public:
  explicit Counted(std::atomic<int64_t>& count) : count_(count) { ++count_; }
  ~Counted() { --count_; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  std::atomic<int64_t>& count_;
};

}  // namespace

Connection::Connection(TransportState& state, Presence presence, Socket socket, bool over_limit)
    : state_(state),
      presence_(std::move(presence)),
      over_limit_(over_limit),
      peer_(address_of(socket)),
      channel_(std::move(socket), state.certificate ? state.certificate->current().get() : nullptr,
               state.options.write_timeout),
      reader_(static_cast<size_t>(state.options.max_head_bytes), state.bodies) {}

Task<> Connection::run() {
  channel_.set_deadline(state_.options.header_timeout);
  const Channel::Error error = co_await channel_.open();
  if (!error) {
    Next next = Next::request;
    while (next == Next::request) next = co_await serve_one();
    phase_ = Phase::closing;
    if (next == Next::close) co_await channel_.finish(kLinger);
    if (next == Next::reset) channel_.reset();
  }
  phase_ = Phase::closing;
  channel_.close();
}

void Connection::sweep(TimePoint now) {
  channel_.sweep(now);
  if (web_socket_ != nullptr && phase_ == Phase::handling && !web_socket_->sweep(now, shared_from_this()))
    channel_.close();
}

void Connection::drain() {
  if (!presence_.visits() && phase_ == Phase::idle) channel_.stop_reading();
}

bool Connection::cut() {
  const bool busy = phase_ == Phase::receiving || phase_ == Phase::handling;
  if (exchange_ != nullptr) exchange_->client_left();
  channel_.close();
  return busy;
}

// False: nothing more will arrive, or not in time.
Task<bool> Connection::receive() {
  const std::span<char> space = reader_.space();
  const Channel::Transfer got = co_await channel_.read_some(boost::asio::buffer(space.data(), space.size()));
  if (got.error || got.bytes == 0) co_return false;
  reader_.received(got.bytes);
  co_return true;
}

Task<Connection::Progress> Connection::receive_head() {
  const TransportOptions& options = state_.options;
  phase_ = reader_.has_bytes() ? Phase::receiving : Phase::idle;
  started_ = std::chrono::steady_clock::now();
  if (over_limit_ || presence_.visits())
    channel_.set_deadline(std::min(kRefusalPatience, options.header_timeout));
  else
    channel_.set_deadline(first_ || phase_ == Phase::receiving ? options.header_timeout
                                                               : options.idle_timeout);
  const bool draining = state_.draining.load(std::memory_order_relaxed) && !presence_.visits();
  if (phase_ == Phase::idle && draining) channel_.stop_reading();

  Progress progress = reader_.advance();
  while (progress == Progress::more) {
    const bool received = co_await receive();
    if (!received) break;
    if (phase_ == Phase::idle) {
      phase_ = Phase::receiving;
      started_ = std::chrono::steady_clock::now();
      if (!first_) channel_.set_deadline(options.header_timeout);
    }
    progress = reader_.advance();
  }
  first_ = false;
  co_return progress;
}

// The deadline for the next kProgressBytes. The whole body may take body_timeout plus the time in which
// min_body_rate delivers the bytes received so far: steady trickling is no progress either.
std::chrono::milliseconds Connection::body_patience(TimePoint begun) const {
  using std::chrono::milliseconds;
  const TransportOptions& options = state_.options;
  if (options.min_body_rate == 0) return options.body_timeout;
  const milliseconds earned(reader_.received_body_bytes() * 1000 / options.min_body_rate);
  const auto spent = std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - begun);
  return std::min(options.body_timeout, options.body_timeout + earned - spent);
}

Task<Connection::Progress> Connection::receive_body() {
  channel_.set_deadline(state_.options.body_timeout);
  const TimePoint begun = std::chrono::steady_clock::now();
  Progress progress = reader_.advance();
  if (progress == Progress::more && reader_.wants_continue()) {
    const Channel::Error error = co_await channel_.write(boost::asio::buffer(kContinue));
    if (error) co_return Progress::more;
    channel_.set_deadline(state_.options.body_timeout);
  }
  int64_t marked = 0;
  while (progress == Progress::more) {
    const bool received = co_await receive();
    if (!received) break;
    progress = reader_.advance();
    if (reader_.received_body_bytes() - marked < kProgressBytes) continue;
    marked = reader_.received_body_bytes();
    channel_.set_deadline(body_patience(begun));
  }
  channel_.clear_deadline();
  co_return progress;
}

Task<Connection::Next> Connection::serve_one() {
  reader_.start(peer_);
  Progress progress = co_await receive_head();
  const bool begun = phase_ == Phase::receiving;
  if (progress == Progress::more && !channel_.expired()) co_return leave();
  if (over_limit_ && progress != Progress::head) co_return co_await turn_away();
  if (progress == Progress::refused) co_return co_await refuse(reader_.refusal());
  if (progress == Progress::more && !begun) co_return Next::drop;
  if (progress == Progress::more) co_return co_await refuse(408, "the head of the request took too long");

  phase_ = Phase::receiving;
  Verdict verdict = state_.application.judge(reader_.request(), reader_.wants_websocket());
  if (over_limit_) {
    // A body could take its time, and places are few.
    if (!verdict.for_operators || reader_.has_body()) co_return co_await turn_away();
    ++state_.accepted;
  }
  if (verdict.refusal) co_return co_await answer_and_close(std::move(*verdict.refusal));
  if (verdict.websocket) co_return co_await converse(std::move(verdict));

  reader_.accept_body(verdict.max_body_bytes);
  progress = co_await receive_body();
  if (progress == Progress::whole) co_return co_await handle(std::move(verdict.answer));
  if (progress == Progress::refused) co_return co_await refuse(reader_.refusal());
  if (channel_.expired()) co_return co_await refuse(408, "the body of the request took too long");
  record(0, false, static_cast<uint64_t>(reader_.received_body_bytes()), 0);
  co_return Next::drop;
}

AnswerManner Connection::manner(bool keep_alive) {
  return {.head_only = reader_.request().method == "HEAD",
          .http_1_0 = reader_.http_1_0(),
          .keep_alive = keep_alive};
}

Task<> Connection::answer(HttpExchange& exchange, std::optional<Response>& ready) {
  if (ready) return exchange.respond(std::move(*ready));
  return state_.application.handle(exchange);
}

Task<Connection::Next> Connection::handle(std::optional<Response> ready) {
  phase_ = Phase::handling;
  const AnswerManner how = manner(reader_.keep_alive() && !over_limit_);
  HttpExchange exchange(channel_, reader_.request(), how, state_.draining);
  exchange_ = &exchange;
  try {
    co_await answer(exchange, ready);
  } catch (const std::exception& error) {
    log(LogLevel::debug, "request ", reader_.request().id, ": ", error.what());
  } catch (...) {
    log(LogLevel::error, "request ", reader_.request().id, ": an unknown exception");
  }
  exchange_ = nullptr;
  exchange.stop_watching();
  record(exchange.status(), exchange.whole(), static_cast<uint64_t>(reader_.received_body_bytes()),
         exchange.bytes_sent());
  co_return after(exchange);
}

Connection::Next Connection::after(const HttpExchange& exchange) const {
  // Kept alive although a drain has begun since: treated as idle, including bytes that the client may have
  // sent already.
  if (exchange.whole()) return exchange.keep_alive() ? Next::request : Next::close;
  const bool stuck = exchange.gone() || channel_.expired();
  return stuck || exchange.ends_with_connection() ? Next::reset : Next::close;
}

Connection::Next Connection::leave() {
  if (over_limit_) ++state_.refused;
  return Next::drop;
}

Task<Connection::Next> Connection::turn_away() {
  ++state_.refused;
  return refuse(503, "too many connections are open at the moment");
}

Task<Connection::Next> Connection::refuse(int status, std::string_view message) {
  return answer_and_close(state_.application.refuse(reader_.request(), status, message));
}

Task<Connection::Next> Connection::answer_and_close(Response response) {
  phase_ = Phase::handling;
  HttpExchange exchange(channel_, reader_.request(), manner(false), state_.draining);
  try {
    co_await exchange.respond(std::move(response));
  } catch (const Error& error) {
    if (error.code() == ErrorCode::internal) log(LogLevel::error, "refusal: ", error.message());
  }
  record(exchange.status(), exchange.whole(), static_cast<uint64_t>(reader_.received_body_bytes()),
         exchange.bytes_sent());
  co_return exchange.whole() ? Next::close : Next::reset;
}

Task<Connection::Next> Connection::converse(Verdict verdict) {
  const std::optional<Refusal> refusal = check_websocket(reader_.request());
  if (refusal) co_return co_await refuse(*refusal);
  phase_ = Phase::handling;
  channel_.clear_deadline();
  channel_.unread(reader_.take_rest());
  web_socket_ = make_web_socket(channel_, reader_.request(),
                                {.max_message_bytes = verdict.max_body_bytes,
                                 .idle_timeout = state_.options.idle_timeout,
                                 .write_timeout = state_.options.write_timeout,
                                 .subprotocol = std::move(verdict.subprotocol)},
                                state_.bodies);
  const Counted counted(state_.websockets);
  const bool accepted = co_await web_socket_->accept();
  if (accepted) {
    uint16_t code = 1000;
    try {
      co_await state_.application.converse(*web_socket_);
    } catch (const std::exception& error) {
      code = 1011;
      log(LogLevel::debug, "request ", reader_.request().id, ": ", error.what());
    }
    co_await web_socket_->close(code, "");
  }
  record(accepted ? 101 : 0, web_socket_->closed_cleanly(), web_socket_->bytes_received(),
         web_socket_->bytes_sent());
  co_return Next::close;
}

void Connection::record(int status, bool whole, uint64_t bytes_received, uint64_t bytes_sent) {
  state_.application.record(reader_.request(), {.status = status,
                                                .whole = whole,
                                                .bytes_received = bytes_received,
                                                .bytes_sent = bytes_sent,
                                                .duration = std::chrono::steady_clock::now() - started_});
}

}  // namespace shoal::server
