#include "models/kokoro/voice_mix.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <map>

#include "base/error.h"
#include "base/printable.h"
#include "base/voice_name.h"

namespace shoal::kokoro {
namespace {

constexpr size_t kMaxExpressionBytes = 2048;
constexpr size_t kMaxParts = 32;
constexpr double kMaxWeight = 1e6;

std::string_view trimmed(std::string_view text) {
  const size_t begin = std::min(text.find_first_not_of(' '), text.size());
  return text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

class MixParser {
 public:
  MixParser(std::string_view expression, FunctionRef<bool(std::string_view)> is_voice)
      : whole_(expression), rest_(expression), is_voice_(is_voice) {}

  VoiceMix parse() {
    if (whole_.size() > kMaxExpressionBytes)
      wrong(concat("expected at most ", kMaxExpressionBytes, " bytes, got ", whole_.size()));
    VoiceMix mix;
    std::map<std::string, double, std::less<>> weights;
    for (char sign = '+'; sign != 0; sign = next_sign()) {
      if (++parts_ > kMaxParts) wrong(concat("expected at most ", kMaxParts, " voices"));
      const std::string_view name = voice(sign);
      const double value = weight();
      total_ += value;
      weights[std::string(name)] += sign == '-' ? -value : value;
      if (mix.first.empty()) mix.first = name;
    }
    if (separators_.find(',') != std::string::npos &&
        (has_weight_ || separators_.find_first_of("+-") != std::string::npos))
      wrong("a list with ',' is a plain mean: it has no '+', '-' or weights");
    for (const auto& [name, value] : weights) {
      if (value != 0) mix.parts.push_back({name, value / total_});
    }
    if (mix.parts.empty()) wrong("nothing is left of it");
    return mix;
  }

 private:
  // Reads up to the next character that cannot be part of a name; `sign` precedes it.
  std::string_view voice(char sign) {
    const std::string_view longest = rest_.substr(0, rest_.find_first_of("+,()"));
    for (size_t end = longest.size();; end = longest.rfind('-', end - 1)) {
      if (const std::string_view name = trimmed(longest.substr(0, end)); !name.empty() && is_voice_(name)) {
        rest_.remove_prefix(end);
        return name;
      }
      if (end == 0 || longest.rfind('-', end - 1) == std::string_view::npos) break;
    }
    const std::string_view unknown = trimmed(longest.substr(0, longest.find('-')));
    if (unknown.empty())
      wrong(parts_ == 1 ? std::string("expected a voice at its beginning")
                        : concat("expected a voice after '", sign, "'"));
    fail(ErrorCode::not_found, "voice \"", printable(whole_), "\": there is no voice \"", printable(unknown),
         "\"");
  }

  double weight() {
    rest_ = trimmed(rest_);
    if (!rest_.starts_with('(')) return 1;
    has_weight_ = true;
    const size_t end = rest_.find(')');
    if (end == std::string_view::npos) wrong(concat("no ')' after \"", printable(rest_), "\""));
    const std::string_view text = trimmed(rest_.substr(1, end - 1));
    double value = 0;
    const auto [stop, error] =
        std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
    if (error != std::errc() || stop != text.data() + text.size() || !(value > 0) || value > kMaxWeight)
      wrong(concat("expected a weight above 0 and at most 1000000, got \"", printable(text), "\""));
    rest_.remove_prefix(end + 1);
    return value;
  }

  // '+', '-' or ','; 0 at the end.
  char next_sign() {
    rest_ = trimmed(rest_);
    if (rest_.empty()) return 0;
    const char sign = rest_.front();
    if (sign != '+' && sign != '-' && sign != ',')
      wrong(concat("expected '+', '-' or ',' before \"", printable(rest_), "\""));
    rest_.remove_prefix(1);
    separators_ += sign;
    return sign;
  }

  [[noreturn]] void wrong(const std::string& what) const {
    fail(ErrorCode::invalid_argument, "voice \"", printable(whole_), "\": ", what);
  }

  std::string_view whole_, rest_;
  FunctionRef<bool(std::string_view)> is_voice_;
  std::string separators_;
  bool has_weight_ = false;
  size_t parts_ = 0;
  double total_ = 0;
};

}  // namespace

std::optional<VoiceTraits> traits_of(std::string_view name) {
  if (name.size() < 4 || name[2] != '_') return std::nullopt;
  if (published_default(name[0]).empty() || (name[1] != 'f' && name[1] != 'm')) return std::nullopt;
  return VoiceTraits{.language = name[0], .sex = name[1]};
}

std::string_view published_default(char language) {
  static constexpr std::string_view kDefaults[] = {"af_heart", "bf_emma",  "ef_dora", "ff_siwis",  "hf_alpha",
                                                   "if_sara",  "jf_alpha", "pf_dora", "zf_xiaobei"};
  for (const std::string_view name : kDefaults) {
    if (name[0] == language) return name;
  }
  return {};
}

std::string VoiceMix::key() const {
  if (is_one_voice()) return parts[0].voice;
  std::string key;
  for (const Part& part : parts) {
    char share[40];
    std::snprintf(share, sizeof share, "(%.17g)", part.share);
    key += concat(key.empty() ? "" : "+", part.voice, share);
  }
  return key;
}

VoiceMix parse_voice_mix(std::string_view expression, FunctionRef<bool(std::string_view)> is_voice) {
  return MixParser(expression, is_voice).parse();
}

}  // namespace shoal::kokoro
