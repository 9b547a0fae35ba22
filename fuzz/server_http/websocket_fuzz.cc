// Frames of a WebSocket: an echoing application must end for any input, messages keep their limit, text
// messages are UTF-8, and the memory accounts are correct.
#include <algorithm>
#include <boost/asio/append.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/core/role.hpp>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "server/http/web_socket_session.h"

namespace shoal::server {
namespace {

constexpr int64_t kMaxMessage = 300, kBudget = 200;

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

// Gives bytes in parts and takes any.
class MemoryStream {
 public:
  using executor_type = Executor;
  MemoryStream(Executor executor, std::string bytes, size_t part_bytes)
      : executor_(executor), bytes_(std::move(bytes)), part_bytes_(part_bytes) {}
  Executor get_executor() { return executor_; }

  template <typename Buffers, typename Token>
  auto async_read_some(const Buffers& buffers, Token&& token) {
    return boost::asio::async_initiate<Token, void(boost::system::error_code, size_t)>(
        [this](auto handler, const Buffers& into) {
          const size_t wanted = std::min(part_bytes_, bytes_.size() - at_);
          const size_t bytes =
              boost::asio::buffer_copy(into, boost::asio::buffer(bytes_.data() + at_, wanted));
          at_ += bytes;
          boost::system::error_code error;
          if (bytes == 0) error = boost::asio::error::eof;
          boost::asio::post(executor_, boost::asio::append(std::move(handler), error, bytes));
        },
        token, buffers);
  }
  template <typename Buffers, typename Token>
  auto async_write_some(const Buffers& buffers, Token&& token) {
    return boost::asio::async_initiate<Token, void(boost::system::error_code, size_t)>(
        [this](auto handler, const Buffers& from) {
          const size_t bytes = boost::asio::buffer_size(from);
          boost::asio::post(executor_,
                            boost::asio::append(std::move(handler), boost::system::error_code(), bytes));
        },
        token, buffers);
  }

 private:
  Executor executor_;
  std::string bytes_;
  size_t at_ = 0, part_bytes_;
};

void teardown(boost::beast::role_type, MemoryStream&, boost::system::error_code& error) { error = {}; }

template <typename Handler>
void async_teardown(boost::beast::role_type, MemoryStream& stream, Handler&& handler) {
  boost::asio::post(stream.get_executor(),
                    boost::asio::append(std::forward<Handler>(handler), boost::system::error_code()));
}

void beast_close_socket(MemoryStream&) {}

namespace {

// By the table of Unicode (3.9, D92), independent of Beast.
bool is_utf8(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  for (size_t i = 0; i < text.size();) {
    const unsigned first = byte(i);
    const size_t size = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    if (first >= 0x80 && (first < 0xC2 || first > 0xF4)) return false;
    for (size_t k = 1; k < size; ++k)
      if ((byte(i + k) & 0xC0) != 0x80) return false;
    if (first == 0xE0 && byte(i + 1) < 0xA0) return false;
    if (first == 0xED && byte(i + 1) > 0x9F) return false;
    if (first == 0xF0 && byte(i + 1) < 0x90) return false;
    if (first == 0xF4 && byte(i + 1) > 0x8F) return false;
    i += size;
  }
  return true;
}

Task<> echo(ServedWebSocket& socket, const BodyBudget& budget, bool& ended) {
  const bool accepted = co_await socket.accept();
  require(accepted);
  try {
    for (;;) {
      const auto message = co_await socket.read();
      if (!message) break;
      require(message->data.size() <= static_cast<size_t>(kMaxMessage));
      require(budget.held() >= static_cast<int64_t>(message->data.size()) && budget.held() <= kBudget);
      require(!message->text || is_utf8(message->data));
      if (message->data == "c")
        co_await socket.close(1000, "");
      else if (message->text)
        co_await socket.write_text(message->data);
      else
        co_await socket.write_binary(message->data);
    }
  } catch (const Error& error) {
    require(error.code() == ErrorCode::cancelled || error.code() == ErrorCode::resource_exhausted);
  }
  co_await socket.close(1000, "");
  ended = true;
}

void run(std::string bytes, size_t part_bytes) {
  Request request;
  request.headers = {{"Host", "h"},
                     {"Connection", "Upgrade"},
                     {"Upgrade", "websocket"},
                     {"Sec-WebSocket-Version", "13"},
                     {"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="}};
  boost::asio::io_context context{1};
  MemoryStream stream(context.get_executor(), std::move(bytes), part_bytes);
  BodyBudget budget(kBudget);
  bool ended = false;
  {
    WebSocketSession<MemoryStream> socket(stream, request, {.max_message_bytes = kMaxMessage}, budget);
    boost::asio::co_spawn(context.get_executor(), echo(socket, budget, ended), boost::asio::detached);
    context.run();
  }
  require(ended);
  require(budget.held() == 0);
}

}  // namespace
}  // namespace shoal::server

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  shoal::server::run(std::move(bytes), 1 + data[0] % 64);
  return 0;
}
