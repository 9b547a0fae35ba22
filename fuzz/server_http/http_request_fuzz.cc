// The bytes of a connection: for any bytes the limits hold, the memory accounts are correct, and requests do
// not depend on how the bytes were cut into reads.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "server/http/request_reader.h"

namespace {

using shoal::server::BodyBudget;
using shoal::server::Request;
using shoal::server::RequestReader;

constexpr int64_t kMaxBody = 300, kBudget = 200;
constexpr size_t kMaxHead = 512;

void require(bool condition) {
  if (!condition) std::abort();
}

std::string described(const Request& request) {
  std::string text = request.method + ' ' + request.path + '\n';
  for (const auto& [key, value] : request.query) text += key + '=' + value + '\n';
  for (const auto& [name, value] : request.headers) text += name + ':' + value + '\n';
  return text + request.body + '\n';
}

// All requests, and the status of the refusal that ended them; "..." when bytes are missing.
std::string read_all(std::string_view bytes, size_t part_bytes) {
  BodyBudget budget(kBudget);
  std::string text;
  {
    RequestReader reader(kMaxHead, budget);
    reader.start("peer");
    for (;;) {
      switch (reader.advance()) {
        case RequestReader::Progress::more: {
          if (bytes.empty()) return text + "...";
          const std::span<char> space = reader.space();
          const size_t part = std::min({space.size(), bytes.size(), part_bytes});
          std::copy_n(bytes.data(), part, space.data());
          reader.received(part);
          bytes.remove_prefix(part);
          break;
        }
        case RequestReader::Progress::head:
          reader.accept_body(kMaxBody);
          break;
        case RequestReader::Progress::whole:
          require(reader.body_bytes() <= kMaxBody && budget.held() <= kBudget);
          require(reader.body_bytes() <= budget.held());
          require(reader.request().path.find('\0') == std::string::npos);
          text += described(reader.request());
          reader.start("peer");
          require(budget.held() == 0);
          break;
        case RequestReader::Progress::refused:
          return text + std::to_string(reader.refusal().status);
      }
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string whole = read_all(bytes, bytes.size());
  const std::string parts = read_all(bytes, 1 + data[0] % 32);
  if (whole == parts) return 0;
  // A malformed or too long request may be refused earlier when the reads are smaller; but a request never
  // becomes another one.
  const size_t common = std::min(whole.size(), parts.size()) - 3;
  require(whole.compare(0, common, parts, 0, common) == 0);
  const bool refused = !whole.ends_with("...") || !parts.ends_with("...");
  require(refused);
  return 0;
}
