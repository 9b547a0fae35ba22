#include "server/routes/live_writer.h"

#include <utility>

#include "base/error.h"

namespace shoal::server {

Task<> LiveWriter::text(std::string message) { return send(Kind::text, std::move(message), 0); }
Task<> LiveWriter::sound(std::string bytes) { return send(Kind::sound, std::move(bytes), 0); }
Task<> LiveWriter::close(uint16_t code, std::string reason) {
  return send(Kind::close, std::move(reason), code);
}

Task<> LiveWriter::send(Kind kind, std::string data, uint16_t code) {
  while (busy_) co_await free_.wait();
  if (broken_) fail(ErrorCode::cancelled, "the client has gone");
  busy_ = true;
  try {
    if (kind == Kind::text)
      co_await socket_.write_text(data);
    else if (kind == Kind::sound)
      co_await socket_.write_binary(data);
    else
      co_await socket_.close(code, data);
  } catch (...) {
    broken_ = true;
  }
  busy_ = false;
  free_.notify();
  if (broken_) fail(ErrorCode::cancelled, "the client has gone, or takes nothing any more");
}

}  // namespace shoal::server
