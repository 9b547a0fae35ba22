#include "cli/server_load_plan.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "bench/load/texts.h"
#include "bench/measure/texts.h"

namespace shoal::cli {
namespace {

constexpr double kServedOpenLoop_s = 30;
constexpr const char* kUsualVoice = "alloy";
constexpr const char* kUsualModel = "tts-1";
constexpr int64_t kUsualItems = 4;

// "5%" or 0.05.
double share_of(const std::string& text, const char* option) {
  if (text.empty()) return 0;
  double value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view rest(end, static_cast<size_t>(text.data() + text.size() - end));
  if (problem != std::errc() || !(rest.empty() || rest == "%"))
    fail(ErrorCode::invalid_argument, option, ": expected a share such as 5%, got \"", text, "\"");
  return rest == "%" ? value / 100 : value;
}

std::pair<std::string, std::string> pair_of(const std::string& text, char between, const char* option) {
  const size_t at = text.find(between);
  const bool breaks = text.find_first_of("\r\n") != std::string::npos;
  if (at == std::string::npos || at == 0 || breaks)
    fail(ErrorCode::invalid_argument, option, ": expected NAME", between, "VALUE, got \"", text, "\"");
  const size_t begin = text.find_first_not_of(' ', at + 1);
  return {text.substr(0, at), begin == std::string::npos ? "" : text.substr(begin)};
}

load::References references_of(const ServerLoadOptions& o) {
  load::References references;
  for (const std::string& path : o.references) references.clips.push_back(load::read_reference_clip(path));
  if (o.fresh.empty()) return references;
  if (references.clips.empty())
    fail(ErrorCode::invalid_argument, "fresh-references: expected clips with --reference");
  references.freshness = o.fresh == "request" ? load::Freshness::request : load::Freshness::level;
  references.salt = static_cast<uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
  return references;
}

load::Container container_of(const ServerLoadOptions& o, load::Api api) {
  if (o.format == "pcm") return load::Container::pcm;
  return api == load::Api::fish ? load::Container::bare_wav : load::Container::wav;
}

load::Question question_of(const ServerLoadOptions& o, load::Api api) {
  load::Question question{.container = container_of(o, api),
                          .model = o.model.value_or(api == load::Api::openai ? kUsualModel : ""),
                          .texts = o.texts == "short" || o.texts == "medium" || o.texts == "long"
                                       ? load::built_in_texts(o.texts, o.seed)
                                       : bench::read_texts(o.texts),
                          .voices = o.voices,
                          .speech_seed = o.speech_seed,
                          .items = api == load::Api::batch ? o.items.value_or(kUsualItems) : 1,
                          .references = references_of(o),
                          .fields = {},
                          .headers = {},
                          .api_key = o.api_key};
  if (question.voices.empty() && api == load::Api::openai) question.voices = {kUsualVoice};
  for (const std::string& field : o.fields) question.fields.push_back(pair_of(field, '=', "field"));
  for (const std::string& header : o.headers) question.headers.push_back(pair_of(header, ':', "header"));
  if (o.api_key.find_first_of("\r\n") != std::string::npos)
    fail(ErrorCode::invalid_argument, "api-key: expected one line");
  return question;
}

// What would have no effect.
void check_effects(const ServerLoadOptions& o, const load::Target& target) {
  using load::Api;
  const bool says_rate = target.api == Api::live || target.api == Api::batch;
  if (o.pcm_rate_hz > 0 && (says_rate || container_of(o, target.api) == load::Container::wav))
    fail(ErrorCode::invalid_argument, "pcm-rate: ",
         says_rate ? concat("the API ", load::name_of(target.api), " says its rate")
                   : "a WAV file says its rate; it goes with --format pcm");
  if (o.items && target.api != Api::batch)
    fail(ErrorCode::invalid_argument, "items: goes with the batch route, /v1/tts/batch");
  if (!o.references.empty() && !o.voices.empty() && target.api != Api::openai)
    fail(ErrorCode::invalid_argument, "voice: a clip of --reference is followed instead");
  if (!o.ca_file.empty() && !target.url.tls)
    fail(ErrorCode::invalid_argument, "ca-file: goes with https, got ", target.url.text());
}

}  // namespace

load::GeneratorOptions generator_options(const ServerLoadOptions& o) {
  load::GeneratorOptions options{.target = load::make_target(o.url, o.api),
                                 .question = {},
                                 .silence = std::pow(10.0, o.silence_db / 20),
                                 .pcm_rate_hz = o.pcm_rate_hz,
                                 .timeout_s = o.timeout_s,
                                 .keep_audio = o.keep_audio,
                                 .authorities = o.ca_file};
  check_effects(o, options.target);
  options.question = question_of(o, options.target.api);
  return options;
}

std::vector<load::LevelPlan> plans_of(const ServerLoadOptions& o) {
  load::LevelPlan plan{.requests = o.requests.value_or(0),
                       .duration_s = o.duration_s.value_or(0),
                       .leave_share = share_of(o.cancel, "cancel"),
                       .real_time = o.listen == "real-time",
                       .slow_share = share_of(o.slow_readers, "slow-readers"),
                       .seed = o.seed};
  if (o.duration_s && !(*o.duration_s > 0))
    fail(ErrorCode::invalid_argument, "duration: expected more than 0, got ", *o.duration_s);
  const bool endless = plan.requests == 0 && plan.duration_s == 0;
  std::vector<load::LevelPlan> plans;
  const std::vector<int> usual = o.check ? std::vector{1, 2, 4, 8, 10} : std::vector{1, 4, 16};
  if (o.sweep && o.rates.size() > 1)
    fail(ErrorCode::invalid_argument, "rate: a sweep begins at one rate, got ", o.rates.size());
  if (o.rates.empty() && !o.sweep) {
    for (const int users : o.concurrency.empty() ? usual : o.concurrency) {
      plan.users = users;
      if (endless) plan.requests = std::max(8, 4 * users);
      plans.push_back(plan);
    }
  }
  const std::vector<double> rates = o.sweep && o.rates.empty() ? std::vector{1.0} : o.rates;
  if (endless) plan.duration_s = rates.empty() ? 0 : kServedOpenLoop_s;
  for (const double rate : rates) {
    if (!(rate > 0)) fail(ErrorCode::invalid_argument, "rate: expected more than 0, got ", rate);
    plan.rate_per_s = rate;
    plans.push_back(plan);
  }
  for (const load::LevelPlan& each : plans) each.validate();
  return plans;
}

}  // namespace shoal::cli
