#include "bench/load/wire.h"

#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/write.hpp>
#include <filesystem>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include "base/error.h"
#include "bench/load/live_stream.h"

namespace shoal::load {
namespace {

namespace ssl = asio::ssl;
using boost::system::error_code;

constexpr int kLittleBytes = 16 << 10;

}  // namespace

Wire::Wire(Executor executor, ssl::context* tls) : socket_(executor), context_(tls) {}
Wire::~Wire() = default;

std::unique_ptr<ssl::context> make_client_tls(const std::string& authorities) {
  auto context = std::make_unique<ssl::context>(ssl::context::tls_client);
  SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_2_VERSION);
  context->set_verify_mode(ssl::verify_peer);
  error_code error;
  if (authorities.empty()) {
    context->set_default_verify_paths(error);
    return context;
  }
  if (!std::filesystem::exists(authorities))
    fail(ErrorCode::not_found, "ca-file: ", authorities, ": no such file");
  context->load_verify_file(authorities, error);
  if (error)
    fail(ErrorCode::invalid_argument, "ca-file: ", authorities,
         ": expected certificates in PEM, got: ", error.message());
  return context;
}

Task<std::optional<Failure>> Wire::open(const Endpoints& endpoints, const Url& url) {
  error_code error = asio::error::host_not_found;
  for (const auto& endpoint : endpoints) {
    error_code ignored;
    socket_.close(ignored);
    auto [outcome] = co_await socket_.async_connect(endpoint, kAwait);
    error = outcome;
    if (!error || error == asio::error::operation_aborted) break;
  }
  if (error) co_return Failure{"connect", concat("cannot connect: ", error.message())};
  error_code ignored;
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
  if (context_ == nullptr) co_return std::nullopt;
  std::optional<Failure> failure = co_await shake_hands(url);
  co_return failure;
}

Task<std::optional<Failure>> Wire::shake_hands(const Url& url) {
  tls_ = std::make_unique<ssl::stream<Socket&>>(socket_, *context_);
  SSL_set_tlsext_host_name(tls_->native_handle(), url.host.c_str());
  tls_->set_verify_callback(ssl::host_name_verification(url.host));
  auto [error] = co_await tls_->async_handshake(ssl::stream_base::client, kAwait);
  if (!error) co_return std::nullopt;
  const long verdict = SSL_get_verify_result(tls_->native_handle());
  if (verdict != X509_V_OK)
    co_return Failure{"certificate", concat("the certificate of ", url.authority(),
                                            " is not accepted: ", X509_verify_cert_error_string(verdict))};
  if (error.message().find("certificate verify failed") != std::string::npos)
    co_return Failure{"certificate", concat("the certificate of ", url.authority(), " is for another host")};
  co_return Failure{"tls", concat(url.authority(), ": ", error.message())};
}

Task<Wire::Transfer> Wire::write(const std::string& bytes) {
  Transfer transfer;
  if (tls_ != nullptr) {
    auto [error, count] = co_await asio::async_write(*tls_, asio::buffer(bytes), kAwait);
    transfer = {error, count};
  } else {
    auto [error, count] = co_await asio::async_write(socket_, asio::buffer(bytes), kAwait);
    transfer = {error, count};
  }
  co_return transfer;
}

Task<Wire::Transfer> Wire::read_some(asio::mutable_buffer into) {
  Transfer transfer;
  if (tls_ != nullptr) {
    auto [error, count] = co_await tls_->async_read_some(asio::buffer(into), kAwait);
    transfer = {error, count};
  } else {
    auto [error, count] = co_await socket_.async_read_some(asio::buffer(into), kAwait);
    transfer = {error, count};
  }
  co_return transfer;
}

Task<std::optional<Failure>> Wire::become_live(const Url& url, const HeaderFields& fields) {
  live_ = tls_ != nullptr ? make_live_stream(*tls_) : make_live_stream(socket_);
  std::optional<Failure> failure = co_await live_->shake_hands(url, fields);
  co_return failure;
}

bool Wire::is_stale() {
  char byte = 0;
  return recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || errno != EAGAIN;
}

void Wire::hold_little() {
  error_code ignored;
  socket_.set_option(asio::socket_base::receive_buffer_size(kLittleBytes), ignored);
}

void Wire::close() {
  error_code ignored;
  socket_.close(ignored);
}

}  // namespace shoal::load
