#include "server/http/body_decoder.h"

#include <algorithm>
#include <array>
#include <limits>
#include <new>
#include <zlib.h>

#include "server/http/message.h"

namespace shoal::server {
namespace {

constexpr size_t kDecodedPiece = 64 << 10;
constexpr int kGzip = 15 + 16, kZlib = 15;  // window bits, as inflateInit2 takes them

}  // namespace

std::optional<BodyDecoder::Coding> BodyDecoder::coding_of(std::string_view name) {
  if (equal_ignoring_case(name, "gzip") || equal_ignoring_case(name, "x-gzip")) return Coding::gzip;
  if (equal_ignoring_case(name, "deflate")) return Coding::deflate;
  return std::nullopt;
}

BodyDecoder::BodyDecoder(Coding coding) : coding_(coding), stream_(std::make_unique<z_stream_s>()) {
  if (inflateInit2(stream_.get(), coding == Coding::gzip ? kGzip : kZlib) != Z_OK) throw std::bad_alloc();
}

BodyDecoder::~BodyDecoder() { inflateEnd(stream_.get()); }

bool BodyDecoder::is_too_dense() const { return bytes_out_ > kFreeBytes + kMostFactor * bytes_in_; }

BodyDecoder::Result BodyDecoder::feed(std::string_view bytes,
                                      const std::function<bool(std::string_view piece)>& take) {
  std::array<char, kDecodedPiece> piece;
  bool more = !bytes.empty();
  while (more) {
    // A gzip file may have several members; zlib data ends after the first.
    if (ended_ && (coding_ != Coding::gzip || inflateReset(stream_.get()) != Z_OK)) return Result::malformed;
    ended_ = false;
    const size_t part = std::min(bytes.size(), size_t{std::numeric_limits<uInt>::max()});
    stream_->next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream_->avail_in = static_cast<uInt>(part);
    stream_->next_out = reinterpret_cast<Bytef*>(piece.data());
    stream_->avail_out = kDecodedPiece;
    const int status = inflate(stream_.get(), Z_NO_FLUSH);
    if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) return Result::malformed;
    const size_t used = part - stream_->avail_in, made = kDecodedPiece - stream_->avail_out;
    bytes.remove_prefix(used);
    bytes_in_ += static_cast<int64_t>(used);
    bytes_out_ += static_cast<int64_t>(made);
    ended_ = status == Z_STREAM_END;
    if (is_too_dense()) return Result::too_dense;
    if (made > 0 && !take({piece.data(), made})) return Result::stopped;
    // When a piece was filled, more output may be pending even without input.
    more = !bytes.empty() || (!ended_ && made == kDecodedPiece);
  }
  return Result::good;
}

}  // namespace shoal::server
