// Text that arrives in pieces, released in segments that can be spoken.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "text/sentence_breaks.h"

namespace shoal::server {

// Segments end at sentence ends. The end of a sentence is certain only once the next one has begun ("etc.
// and", "etc. And", "he said.)"), so a segment is released with the first character that decides it. The
// first segment is short, so that sound begins early: it may also end at a clause. Later ones gather
// sentences.
//
// All segments together are the text, byte for byte. They depend only on the text and on where flush() was
// called, not on how the text was cut into pieces.
class LiveText {
 public:
  // longest_bytes: of a segment; a sentence that is longer is cut at a clause, else a space, else between
  // characters. At least 50.
  explicit LiveText(size_t longest_bytes);

  // Adds any piece, even an empty one. Throws Error(invalid_argument) if it is not UTF-8; then nothing is
  // added.
  void add(std::string_view piece);
  // Treats the text so far as complete, whatever follows.
  void flush();
  // The next segment; absent when none is complete.
  std::optional<std::string> next();
  // The text that next() has not returned yet.
  size_t pending_bytes() const { return ready_bytes_ + text_.size() - start_; }

 private:
  std::string_view window() const;
  bool fits(const text::Break& end, std::string_view window) const;
  size_t settled_end(std::string_view window) const;
  size_t forced_end(std::string_view window) const;
  void release(size_t bytes);
  void drop_released();

  const size_t longest_;
  std::string text_;
  size_t start_ = 0;     // of the segment that is being gathered
  size_t released_ = 0;  // segments
  std::deque<std::string> ready_;
  size_t ready_bytes_ = 0;
};

}  // namespace shoal::server
