#include "server/http/fetch.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <memory>
#include <tuple>

namespace shoal::server {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;
using Stream = boost::beast::basic_stream<asio::ip::tcp, Executor>;

constexpr auto kAwaitTransfer = asio::as_tuple(asio::use_awaitable_t<Executor>());

http::request<http::empty_body> question_to(const Peer& peer, const std::string& target,
                                            const Headers& headers) {
  constexpr unsigned kHttp11 = 11;
  http::request<http::empty_body> question(http::verb::get, target, kHttp11);
  question.set(http::field::host, peer.host + ":" + std::to_string(peer.port));
  question.set(http::field::connection, "close");
  for (const auto& [name, value] : headers) question.set(name, value);
  return question;
}

// stream: connected, under TLS or not.
template <typename AnyStream>
Task<std::optional<Response>> ask(AnyStream& stream, const http::request<http::empty_body>& question) {
  auto [error, bytes] = co_await http::async_write(stream, question, kAwaitTransfer);
  if (error) co_return std::nullopt;
  boost::beast::flat_buffer buffer;
  http::response_parser<http::string_body> parser;
  parser.body_limit(kMostFetchedBytes);
  std::tie(error, bytes) = co_await http::async_read(stream, buffer, parser, kAwaitTransfer);
  if (error) co_return std::nullopt;
  http::response<http::string_body> answer = parser.release();
  Response response{.status = static_cast<int>(answer.result_int()),
                    .content_type = std::string(answer[http::field::content_type]),
                    .body = std::move(answer.body()),
                    .headers = {}};
  co_return response;
}

// Answers that come in any order, and who waits for the last. They outlive one who waits no longer.
struct Gathering {
  using Timer = asio::basic_waitable_timer<std::chrono::steady_clock,
                                           asio::wait_traits<std::chrono::steady_clock>, Executor>;
  Gathering(const Executor& executor, size_t count) : answers(count), left(count), last(executor) {
    last.expires_at(Timer::time_point::max());
  }

  std::vector<std::optional<Response>> answers;
  size_t left;
  Timer last;  // cancelled when it has come
};

Task<> fetch_into(std::shared_ptr<Gathering> gathering, size_t index, Peer peer, std::string target,
                  Headers headers, std::chrono::milliseconds patience) {
  try {
    std::optional<Response> answer = co_await fetch(gathering->last.get_executor(), std::move(peer),
                                                    std::move(target), std::move(headers), patience);
    gathering->answers[index] = std::move(answer);
  } catch (const std::exception&) {  // no answer: who waits must not wait for ever
  }
  if (--gathering->left == 0) gathering->last.cancel();
}

}  // namespace

Task<std::optional<Response>> fetch(Executor executor, Peer peer, std::string target, Headers headers,
                                    std::chrono::milliseconds patience) {
  Stream stream(executor);
  stream.expires_after(patience);
  error_code error;
  const asio::ip::tcp::endpoint endpoint(asio::ip::make_address_v4(peer.host, error), peer.port);
  if (error) co_return std::nullopt;
  std::tie(error) = co_await stream.async_connect(endpoint, kAwaitTransfer);
  if (error) co_return std::nullopt;
  const http::request<http::empty_body> question = question_to(peer, target, headers);
  if (!peer.tls) co_return co_await ask(stream, question);
  asio::ssl::context context(asio::ssl::context::tls_client);
  asio::ssl::stream<Stream&> secure(stream, context);
  std::tie(error) = co_await secure.async_handshake(asio::ssl::stream_base::client, kAwaitTransfer);
  if (error) co_return std::nullopt;
  co_return co_await ask(secure, question);
}

std::optional<Response> fetch_and_wait(Peer peer, std::string target, Headers headers,
                                       std::chrono::milliseconds patience) {
  asio::io_context context;
  auto answer = asio::co_spawn(
      context,
      fetch(context.get_executor(), std::move(peer), std::move(target), std::move(headers), patience),
      asio::use_future);
  context.run();
  return answer.get();
}

Task<std::vector<std::optional<Response>>> fetch_all(Executor executor, std::vector<Peer> peers,
                                                     std::string target, Headers headers,
                                                     std::chrono::milliseconds patience) {
  const auto gathering = std::make_shared<Gathering>(executor, peers.size());
  for (size_t i = 0; i < peers.size(); ++i)
    asio::co_spawn(executor, fetch_into(gathering, i, std::move(peers[i]), target, headers, patience),
                   asio::detached);
  while (gathering->left > 0) co_await gathering->last.async_wait(kAwaitTransfer);
  co_return std::move(gathering->answers);
}

}  // namespace shoal::server
