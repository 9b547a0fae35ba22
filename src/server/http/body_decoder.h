// Content-Encoding of a request's body, undone as the bytes come.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>

struct z_stream_s;

namespace shoal::server {

// gzip (RFC 1952), also of several members, and deflate, which means zlib's form (RFC 9110 8.4.1.2, RFC
// 1950).
class BodyDecoder {
 public:
  enum class Coding { gzip, deflate };
  enum class Result {
    good,
    malformed,
    too_dense,  // more than kMostFactor times the input: a decompression bomb
    stopped,    // by the receiver
  };
  // The size that any small input may expand to, and the largest factor for the rest.
  static constexpr int64_t kFreeBytes = int64_t{1} << 20, kMostFactor = 100;

  // The names of codings that are read, for messages.
  static constexpr std::string_view kNames = "gzip, deflate";
  // `name` as in the field; absent: one that is not read.
  static std::optional<Coding> coding_of(std::string_view name);

  explicit BodyDecoder(Coding coding);
  ~BodyDecoder();
  BodyDecoder(const BodyDecoder&) = delete;
  BodyDecoder& operator=(const BodyDecoder&) = delete;

  // Passes the output to `take` in pieces of at most 64 KiB until that returns false. Holds about 40 KiB.
  // Throws std::bad_alloc.
  Result feed(std::string_view bytes, const std::function<bool(std::string_view piece)>& take);
  // The end has come where one may be.
  bool ended() const { return ended_; }

 private:
  bool is_too_dense() const;

  const Coding coding_;
  std::unique_ptr<z_stream_s> stream_;
  int64_t bytes_in_ = 0, bytes_out_ = 0;
  bool ended_ = false;
};

}  // namespace shoal::server
