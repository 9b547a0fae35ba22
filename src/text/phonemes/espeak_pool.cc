#include "text/phonemes/espeak_pool.h"

#include <algorithm>
#include <charconv>
#include <chrono>

#include "base/error.h"
#include "base/log.h"
#include "base/printable.h"

namespace shoal::phonemes {
namespace {

// Limits a request, and its answer (IPA is about twice as long as text), to kMaxMessageBytes.
constexpr size_t kMaxRequestBytes = 32 << 10;

EspeakVersion parse_version(std::string_view text) {
  EspeakVersion version;
  const char* const end = text.data() + text.size();
  const auto major = std::from_chars(text.data(), end, version.major);
  if (major.ec == std::errc() && major.ptr < end && *major.ptr == '.')
    std::from_chars(major.ptr + 1, end, version.minor);
  return version;
}

void check_text(const std::string& text) {
  if (text.size() > EspeakPool::kMaxTextBytes)
    fail(ErrorCode::invalid_argument, "phonemizer: a text of at most ", EspeakPool::kMaxTextBytes,
         " bytes expected, got ", text.size());
  if (text.find('\0') != std::string::npos || !is_utf8(text))
    fail(ErrorCode::invalid_argument, "phonemizer: expected UTF-8 without zero bytes");
}

}  // namespace

// A helper reserved for this caller.
class EspeakPool::Lease {
 public:
  Lease(EspeakPool& pool, std::string_view language) : pool_(pool), index_(pool.lease(language)) {}
  ~Lease() {
    {
      const std::lock_guard lock(pool_.mutex_);
      pool_.helpers_[index_].busy = false;
    }
    pool_.freed_.notify_all();
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  Helper& helper() { return pool_.helpers_[index_]; }

 private:
  EspeakPool& pool_;
  size_t index_;
};

EspeakPool::EspeakPool(EspeakOptions options) : options_(std::move(options)) {
  if (options_.helpers < 1 || options_.helpers > 64)
    fail(ErrorCode::invalid_argument, "phonemizer: helpers: expected 1 to 64, got ", options_.helpers);
  if (options_.timeout_ms < 1 || options_.timeout_ms > 600'000)
    fail(ErrorCode::invalid_argument, "phonemizer: timeout_ms: expected 1 to 600000, got ",
         options_.timeout_ms);
  helpers_.resize(static_cast<size_t>(options_.helpers));
}

EspeakPool::~EspeakPool() = default;

// Changing the language costs a helper up to 1.4 ms, starting one costs more: first one that speaks it, then
// one that runs, then one to be started. Callers that wait get theirs in the order they came.
size_t EspeakPool::lease(std::string_view language) {
  std::unique_lock lock(mutex_);
  const uint64_t ticket = ++tickets_;
  waiting_.push_back(ticket);
  const auto rank = [&](const Helper& helper) {
    return !helper.process ? 2 : helper.language == language ? 0 : 1;
  };
  size_t best = helpers_.size();
  const bool found = freed_.wait_for(lock, std::chrono::milliseconds(options_.timeout_ms), [&] {
    best = helpers_.size();
    if (waiting_.front() != ticket) return false;
    for (size_t i = 0; i < helpers_.size(); ++i) {
      if (!helpers_[i].busy && (best == helpers_.size() || rank(helpers_[i]) < rank(helpers_[best])))
        best = i;
    }
    return best < helpers_.size();
  });
  std::erase(waiting_, ticket);
  freed_.notify_all();  // the next one may be first now, and another helper free
  if (!found)
    fail(ErrorCode::resource_exhausted, "phonemizer: all ", helpers_.size(), " helpers were busy for ",
         options_.timeout_ms, " ms");
  helpers_[best].busy = true;
  return best;
}

void EspeakPool::start_if_needed(Helper& helper) {
  if (helper.process) return;
  auto process = std::make_unique<EspeakProcess>(
      options_.program.empty() ? find_phonemizer() : options_.program, options_.timeout_ms);
  const std::lock_guard lock(mutex_);
  version_ = parse_version(process->version_text());
  knows_version_ = true;
  helper.process = std::move(process);
  helper.language.clear();
}

std::vector<std::string> EspeakPool::ask(std::string_view language, std::span<const std::string> texts) {
  Message request;
  request.strings.emplace_back(language);
  request.strings.insert(request.strings.end(), texts.begin(), texts.end());

  Lease lease(*this, language);
  Helper& helper = lease.helper();
  for (int attempt = 0; attempt < 2; ++attempt) {
    start_if_needed(helper);
    Message answer;
    const EspeakProcess::Outcome outcome = helper.process->exchange(request, answer, options_.timeout_ms);
    const bool answered = outcome == EspeakProcess::Outcome::answered;
    if (answered && answer.kind == MessageKind::ok && answer.strings.size() == texts.size()) {
      const std::lock_guard lock(mutex_);
      helper.language = language;
      return std::move(answer.strings);
    }
    if (answered && answer.kind == MessageKind::no_such_language)
      fail(ErrorCode::unsupported, "phonemizer: the installed espeak-ng has no voice \"", printable(language),
           "\"; install espeak-ng-data");
    if (answered && answer.kind == MessageKind::failed)
      fail(ErrorCode::unavailable,
           "phonemizer: ", printable(answer.strings.empty() ? "it failed" : answer.strings[0]));
    std::unique_ptr<EspeakProcess> lost;
    {
      const std::lock_guard lock(mutex_);
      lost = std::move(helper.process);
    }
    if (outcome == EspeakProcess::Outcome::timed_out) {
      log(LogLevel::warning, "phonemizer: helper ", lost->pid(), " hung and was ended");
      fail(ErrorCode::unavailable, "phonemizer: no answer within ", options_.timeout_ms, " ms");
    }
    log(LogLevel::warning, "phonemizer: helper ", lost->pid(), " died");
  }
  fail(ErrorCode::unavailable, "phonemizer: the helper died twice over this text");
}

std::vector<std::string> EspeakPool::to_ipa(Language language, std::span<const std::string> texts) {
  for (const std::string& text : texts) check_text(text);
  std::vector<std::string> ipa;
  ipa.reserve(texts.size());
  for (size_t begin = 0; begin < texts.size();) {
    size_t end = begin;
    size_t bytes = 0;
    while (end < texts.size() && bytes < kMaxRequestBytes) bytes += texts[end++].size() + kLengthBytes;
    for (std::string& answer : ask(espeak_name(language), texts.subspan(begin, end - begin))) {
      if (!is_utf8(answer)) fail(ErrorCode::unavailable, "phonemizer: its answer is not UTF-8");
      ipa.push_back(std::move(answer));
    }
    begin = end;
  }
  return ipa;
}

std::vector<std::string> EspeakPool::phonemes(Language language, std::span<const std::string> texts) {
  if (texts.empty()) return {};
  std::vector<std::string> out = to_ipa(language, texts);
  const EspeakVersion espeak = version();
  for (std::string& ipa : out) ipa = map_espeak(ipa, language, espeak);
  return out;
}

EspeakVersion EspeakPool::version() {
  {
    const std::lock_guard lock(mutex_);
    if (knows_version_) return version_;
  }
  Lease lease(*this, "");
  start_if_needed(lease.helper());
  const std::lock_guard lock(mutex_);
  return version_;
}

std::vector<pid_t> EspeakPool::pids() {
  const std::lock_guard lock(mutex_);
  std::vector<pid_t> pids;
  for (const Helper& helper : helpers_) {
    if (helper.process) pids.push_back(helper.process->pid());
  }
  return pids;
}

}  // namespace shoal::phonemes
