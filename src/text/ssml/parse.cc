#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <exception>
#include <expat.h>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "base/blanks.h"
#include "base/error.h"
#include "base/printable.h"
#include "text/characters.h"
#include "text/ssml/ssml.h"
#include "text/utf8.h"

namespace shoal::ssml {
namespace {

constexpr size_t kMaxBytes = size_t{256} << 10;
constexpr double kSlowest = 0.25, kFastest = 4;

// The attributes of an element, each to be taken by name.
class Reader {
 public:
  Reader(std::string_view element, const char* const* pairs) : element_(element) {
    for (; *pairs; pairs += 2) left_.emplace_back(pairs[0], pairs[1]);
  }
  std::optional<std::string> take(std::string_view name) {
    const auto found = std::ranges::find(left_, name, &std::pair<std::string, std::string>::first);
    if (found == left_.end()) return std::nullopt;
    std::string value = std::move(found->second);
    left_.erase(found);
    return value;
  }
  std::string need(std::string_view name) {
    if (auto value = take(name)) return *std::move(value);
    fail(ErrorCode::invalid_argument, "<", element_, ">: ", name, " is missing");
  }
  // Everything must have been taken, but what only declares.
  void end(std::vector<std::string>& unused) {
    for (const auto& [name, value] : left_) {
      if (name.starts_with("xmlns") || name == "xsi:schemaLocation" || name == "xml:id") continue;
      if (name == "xml:lang" || name == "xml:base") {
        std::string why = name == "xml:lang" ? "xml:lang: the language is the request's or the voice's"
                                             : "xml:base: nothing is loaded";
        if (std::ranges::count(unused, why) == 0) unused.push_back(std::move(why));
        continue;
      }
      fail(ErrorCode::unsupported, "<", element_, ">: the attribute ", printable(name),
           " is not supported; leave it out");
    }
  }

 private:
  const std::string_view element_;
  std::vector<std::pair<std::string, std::string>> left_;
};

// "1.5" -> 1.5; absent for anything else.
std::optional<double> number_in(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

double seconds_of(const std::string& time) {
  std::string_view digits = without_blanks(time);
  double unit = 0;
  if (digits.ends_with("ms")) {
    unit = 1e-3;
    digits.remove_suffix(2);
  } else if (digits.ends_with('s')) {
    unit = 1;
    digits.remove_suffix(1);
  }
  const std::optional<double> value = number_in(digits);
  if (unit == 0 || !value || *value < 0 || *value * unit > kMaxBreakS)
    fail(ErrorCode::invalid_argument, "<break>: time: expected 0s to ", kMaxBreakS,
         "s, as 500ms or 1.5s, got \"", printable(time), "\"");
  return *value * unit;
}

double seconds_of_strength(const std::string& strength) {
  constexpr std::array<std::pair<std::string_view, double>, 6> kStrengths = {
      {{"none", 0}, {"x-weak", 0.1}, {"weak", 0.25}, {"medium", 0.5}, {"strong", 1}, {"x-strong", 1.5}}};
  for (const auto& [name, seconds] : kStrengths)
    if (strength == name) return seconds;
  fail(ErrorCode::invalid_argument,
       "<break>: strength: expected none, x-weak, weak, medium, strong or x-strong, got \"",
       printable(strength), "\"");
}

double rate_of(const std::string& text) {
  constexpr std::array<std::pair<std::string_view, double>, 6> kRates = {
      {{"x-slow", 0.5}, {"slow", 0.75}, {"medium", 1}, {"default", 1}, {"fast", 1.25}, {"x-fast", 1.6}}};
  for (const auto& [name, rate] : kRates)
    if (text == name) return rate;
  const std::string_view value = without_blanks(text);
  const bool percent = value.ends_with('%');
  const bool change = value.starts_with('+') || value.starts_with('-');
  std::optional<double> rate = number_in(percent ? value.substr(0, value.size() - 1) : value);
  if (rate && percent) rate = change ? 1 + *rate / 100 : *rate / 100;
  if (!rate || (change && !percent) || *rate < kSlowest || *rate > kFastest)
    fail(ErrorCode::invalid_argument,
         "<prosody>: rate: expected x-slow, slow, medium, fast, x-fast, 80%, +20% "
         "or a factor, of ",
         kSlowest, " to ", kFastest, ", got \"", printable(text), "\"");
  return *rate;
}

// What stands between the tags of an element, and how it is spoken.
struct Frame {
  std::string name, voice;
  double rate = 1;
  std::optional<std::string> held;  // text that its end turns into other words
  std::string what, format;         // of say-as; alias of sub; ph of phoneme
};

class Builder {
 public:
  explicit Builder(const Options& options) : options_(options) {}

  void begin(std::string_view name, const char* const* attributes) {
    if (frames_.size() >= static_cast<size_t>(kMaxDepth))
      fail(ErrorCode::invalid_argument, "expected at most ", kMaxDepth, " elements within each other");
    if (frames_.empty() != (name == "speak"))
      fail(ErrorCode::invalid_argument,
           frames_.empty() ? "expected <speak> around everything" : "<speak>: stands only around everything");
    if (!frames_.empty() && frames_.back().held)
      fail(ErrorCode::unsupported, "<", printable(name), ">: cannot stand in <", frames_.back().name, ">");
    Frame frame;
    if (!frames_.empty()) {
      frame.voice = frames_.back().voice;
      frame.rate = frames_.back().rate;
    }
    frame.name = name;
    Reader reader(frame.name, attributes);
    open(frame, reader);
    reader.end(document_.unused);
    frames_.push_back(std::move(frame));
  }

  void end() {
    Frame frame = std::move(frames_.back());
    frames_.pop_back();
    if (frame.held) {
      words_of(frame);
    } else if (frame.name == "p" || frame.name == "s") {
      end_sentence();
    } else if (frame.name == "voice" || frame.name == "prosody") {
      end_part();
    }
  }

  void characters(std::string_view text) {
    std::string& into = frames_.back().held ? *frames_.back().held : text_;
    for (size_t at = 0; at < text.size();) {
      const size_t bytes = text::character_bytes(text[at]);
      if (!text::is_white_space(text::code_point_at(text, at)))
        into.append(text, at, bytes);
      else if (!into.empty() && !into.ends_with(' ') && !into.ends_with('\n'))
        into += ' ';
      at += bytes;
    }
    check_style();
  }

  Document take() {
    end_part();
    if (document_.parts.empty())
      fail(ErrorCode::invalid_argument, "there is nothing in <speak> to be spoken");
    return std::move(document_);
  }

 private:
  void open(Frame& frame, Reader& reader) {
    const std::string& name = frame.name;
    if (name == "speak") {
      const std::string version = reader.take("version").value_or("1.1");
      if (version != "1.0" && version != "1.1")
        fail(ErrorCode::unsupported, "<speak>: version: expected 1.0 or 1.1, got \"", printable(version),
             "\"");
    } else if (name == "p" || name == "s") {
      end_sentence();
    } else if (name == "break") {
      pause(reader);
    } else if (name == "prosody") {
      end_part();
      frame.rate *= rate_of(reader.need("rate"));
      if (frame.rate < kSlowest || frame.rate > kFastest)
        fail(ErrorCode::invalid_argument, "<prosody>: rate: expected ", kSlowest, " to ", kFastest,
             " within the others, got ", frame.rate);
    } else if (name == "voice") {
      end_part();
      frame.voice = reader.need("name");
    } else if (name == "say-as") {
      frame.held.emplace();
      frame.what = reader.need("interpret-as");
      frame.format = reader.take("format").value_or("");
    } else if (name == "sub") {
      frame.held.emplace();
      frame.what = reader.need("alias");
    } else if (name == "phoneme") {
      open_phoneme(frame, reader);
    } else {
      fail(ErrorCode::unsupported, "<", printable(name),
           ">: is not supported; expected speak, p, s, break, say-as, sub, phoneme, prosody or voice");
    }
  }

  void open_phoneme(Frame& frame, Reader& reader) const {
    if (!options_.phonemes)
      fail(ErrorCode::unsupported, "<phoneme>: this model reads no phonemes; write the word as it sounds");
    const std::string alphabet = reader.take("alphabet").value_or("ipa");
    if (alphabet != "ipa")
      fail(ErrorCode::unsupported, "<phoneme>: alphabet: expected ipa, got \"", printable(alphabet), "\"");
    frame.what = reader.need("ph");
    const bool fits = frame.what.find_first_of("/()[]\n") == std::string::npos &&
                      !text::strip_white_space(frame.what).empty();
    if (!fits)
      fail(ErrorCode::invalid_argument, "<phoneme>: ph: expected phonemes without / ( ) [ ], got \"",
           printable(frame.what), "\"");
    frame.held.emplace();
  }

  void pause(Reader& reader) {
    const auto strength = reader.take("strength");
    const auto time = reader.take("time");
    const double of_strength = seconds_of_strength(strength.value_or("medium"));
    const double seconds = time ? seconds_of(*time) : of_strength;
    pauses_s_ += seconds;
    if (pauses_s_ > kMaxBreaksS)
      fail(ErrorCode::invalid_argument, "<break>: expected at most ", kMaxBreaksS, " seconds in all");
    if (seconds == 0) return;
    end_part();
    if (document_.parts.empty()) add_part({});
    document_.parts.back().pause_after_s += seconds;
  }

  // The words of an element that gives others than it holds.
  void words_of(const Frame& frame) {
    const std::string_view content = text::strip_white_space(*frame.held);
    if (frame.name == "sub") {
      characters(frame.what);
    } else if (frame.name == "phoneme") {
      if (content.empty() || content.find_first_of("[]") != std::string_view::npos)
        fail(ErrorCode::invalid_argument, "<phoneme>: expected a word without brackets in it");
      characters(concat("[", content, "](/", text::strip_white_space(frame.what), "/)"));
    } else {
      try {
        characters(say_as(frame.what, frame.format, content));
      } catch (const Error& error) {
        fail(error.code(), "<say-as>: ", error.message());
      }
    }
  }

  // The text so far belongs to one voice and rate: those of the innermost element.
  void check_style() {
    if (frames_.back().held || style_) return;
    style_ = {frames_.back().voice, frames_.back().rate};
  }

  void end_sentence() {
    while (text_.ends_with(' ')) text_.pop_back();
    if (text_.empty() || text_.ends_with('\n')) return;
    const size_t last = text::previous_character(text_, text_.size());
    if (text::is_letter_or_digit(text::code_point_at(text_, last))) text_ += '.';
    text_ += '\n';
  }

  void end_part() {
    const std::string_view content = text::strip_white_space(text_);
    if (!content.empty()) {
      Part part;
      part.text = content;
      if (style_) std::tie(part.voice, part.rate) = *style_;
      add_part(std::move(part));
    }
    text_.clear();
    style_.reset();
  }

  void add_part(Part part) {
    if (document_.parts.size() >= static_cast<size_t>(kMaxParts))
      fail(ErrorCode::invalid_argument, "expected at most ", kMaxParts,
           " parts between breaks, voices and rates");
    document_.parts.push_back(std::move(part));
  }

  const Options options_;
  Document document_;
  std::vector<Frame> frames_;
  std::string text_;
  std::optional<std::pair<std::string, double>> style_;
  double pauses_s_ = 0;
};

// Expat is written in C: what is thrown waits until it has returned.
class Parse {
 public:
  explicit Parse(const Options& options) : builder_(options), parser_(XML_ParserCreate("UTF-8")) {
    if (!parser_) throw std::bad_alloc();
    XML_SetUserData(parser_.get(), this);
    XML_SetElementHandler(
        parser_.get(),
        [](void* self, const char* name, const char** attributes) {
          of(self).guard([&](Builder& builder) { builder.begin(name, attributes); });
        },
        [](void* self, const char*) { of(self).guard([](Builder& builder) { builder.end(); }); });
    XML_SetCharacterDataHandler(parser_.get(), [](void* self, const char* text, int bytes) {
      of(self).guard([&](Builder& builder) { builder.characters({text, static_cast<size_t>(bytes)}); });
    });
    // Without a document type there are no entities to expand or to load.
    XML_SetStartDoctypeDeclHandler(parser_.get(), [](void* self, const char*, const char*, const char*, int) {
      of(self).guard([](Builder&) {
        fail(ErrorCode::unsupported, "<!DOCTYPE>: document types and entities are not read; leave it out");
      });
    });
  }

  Document run(std::string_view ssml) {
    const XML_Status status = XML_Parse(parser_.get(), ssml.data(), static_cast<int>(ssml.size()), XML_TRUE);
    try {
      if (thrown_) std::rethrow_exception(thrown_);
      if (status != XML_STATUS_OK)
        fail(ErrorCode::invalid_argument,
             "not well-formed XML: ", XML_ErrorString(XML_GetErrorCode(parser_.get())));
      return builder_.take();
    } catch (const Error& error) {
      fail(error.code(), "text: line ", XML_GetCurrentLineNumber(parser_.get()),
           " of the SSML: ", error.message());
    }
  }

 private:
  static Parse& of(void* self) { return *static_cast<Parse*>(self); }

  template <typename Work>
  void guard(Work work) noexcept {
    if (thrown_) return;
    try {
      work(builder_);
    } catch (...) {
      thrown_ = std::current_exception();
      XML_StopParser(parser_.get(), XML_FALSE);
    }
  }

  struct Free {
    void operator()(XML_Parser parser) const { XML_ParserFree(parser); }
  };

  Builder builder_;
  std::exception_ptr thrown_;
  const std::unique_ptr<XML_ParserStruct, Free> parser_;
};

}  // namespace

Document parse(std::string_view ssml, const Options& options) {
  if (ssml.size() > kMaxBytes)
    fail(ErrorCode::too_large, "text: expected at most ", kMaxBytes, " bytes of SSML, got ", ssml.size());
  text::require_utf8(ssml);
  return Parse(options).run(ssml);
}

}  // namespace shoal::ssml
