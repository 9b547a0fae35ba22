#include "bench/load/answer_reader.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <cctype>
#include <charconv>
#include <utility>

namespace shoal::load {
namespace {

namespace http = boost::beast::http;
using boost::system::error_code;
using Text = boost::beast::string_view;

constexpr uint32_t kMostHeadBytes = 64 << 10;
constexpr size_t kMostPendingBytes = 128 << 10;  // a head, or the line that begins a chunk
constexpr std::string_view kRateFields[] = {"x-shoal-sample-rate", "x-sample-rate", "x-audio-sample-rate",
                                            "sample-rate"};

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

int number_of(std::string_view text) {
  int value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return std::max(0, value);
}

}  // namespace

int rate_of_content_type(std::string_view content_type) {
  for (const std::string_view name : {std::string_view("rate="), std::string_view("samplerate=")}) {
    const size_t at = content_type.find(name);
    if (at == std::string_view::npos || at == 0) continue;
    const char before = content_type[at - 1];
    if (before == ';' || before == ' ') return number_of(content_type.substr(at + name.size()));
  }
  return 0;
}

class AnswerReader::Parser final : public http::basic_parser<false> {
 public:
  explicit Parser(OnBody on_body) : on_body_(std::move(on_body)) {
    eager(true);
    header_limit(kMostHeadBytes);
    body_limit(boost::none);
  }
  AnswerHead head;

 private:
  void on_request_impl(http::verb, Text, Text, int, error_code&) override {}
  void on_response_impl(int code, Text, int, error_code&) override { head.status = code; }
  void on_field_impl(http::field, Text name, Text value, error_code&) override {
    const std::string key = lower({name.data(), name.size()});
    const std::string_view text(value.data(), value.size());
    if (key == "content-type") head.content_type = lower(text);
    if (std::find(std::begin(kRateFields), std::end(kRateFields), key) != std::end(kRateFields))
      head.rate_hz = number_of(text);
  }
  void on_header_impl(error_code&) override {
    if (head.rate_hz == 0) head.rate_hz = rate_of_content_type(head.content_type);
    head.keeps_alive = keep_alive();
  }
  void on_body_init_impl(const boost::optional<uint64_t>&, error_code&) override {}
  size_t on_body_impl(Text body, error_code&) override { return give(body); }
  void on_chunk_header_impl(uint64_t, Text, error_code&) override {}
  size_t on_chunk_body_impl(uint64_t, Text body, error_code&) override { return give(body); }
  void on_finish_impl(error_code&) override {}

  size_t give(Text body) {
    on_body_({body.data(), body.size()});
    return body.size();
  }

  OnBody on_body_;
};

AnswerReader::AnswerReader(OnBody on_body) : parser_(std::make_unique<Parser>(std::move(on_body))) {}
AnswerReader::~AnswerReader() = default;

std::optional<std::string> AnswerReader::take(std::string_view bytes) {
  if (!pending_.empty()) {
    pending_ += bytes;
    bytes = pending_;
  }
  while (!bytes.empty() && !parser_->is_done()) {
    error_code error;
    const size_t used = parser_->put(boost::asio::const_buffer(bytes.data(), bytes.size()), error);
    bytes.remove_prefix(used);
    if (error == http::error::need_more) break;
    if (error) return error.message();
    if (used == 0) break;
  }
  pending_ = std::string(bytes);
  if (pending_.size() > kMostPendingBytes) return "a line of it does not end";
  return std::nullopt;
}

bool AnswerReader::is_whole_at_end() {
  if (parser_->is_done()) return true;
  if (!parser_->got_some() || !parser_->is_header_done()) return false;
  error_code error;
  parser_->put_eof(error);
  return !error && parser_->is_done();
}

bool AnswerReader::has_head() const { return parser_->is_header_done(); }
bool AnswerReader::is_done() const { return parser_->is_done(); }
const AnswerHead& AnswerReader::head() const { return parser_->head; }

}  // namespace shoal::load
