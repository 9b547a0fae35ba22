// An HTTP answer out of the bytes of a socket, piece by piece.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace shoal::load {

struct AnswerHead {
  int status = 0;
  std::string content_type;  // in lower case
  // Of x-shoal-sample-rate, x-sample-rate, x-audio-sample-rate, sample-rate, or a rate= of the content type;
  // 0: none.
  int rate_hz = 0;
  bool keeps_alive = false;
};

class AnswerReader {
 public:
  using OnBody = std::function<void(std::string_view)>;
  explicit AnswerReader(OnBody on_body);
  ~AnswerReader();

  // Gives what `bytes` have of the body to `on_body`, after the head is known. Returns what is wrong with
  // them.
  std::optional<std::string> take(std::string_view bytes);
  // The peer has closed. Whether the answer is whole.
  bool is_whole_at_end();
  bool has_head() const;
  bool is_done() const;
  const AnswerHead& head() const;

 private:
  class Parser;
  std::unique_ptr<Parser> parser_;
  std::string pending_;
};

// Of a content type: 16000 for "audio/pcm; rate=16000"; 0: none.
int rate_of_content_type(std::string_view content_type);

}  // namespace shoal::load
