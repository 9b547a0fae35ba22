#include "settings/table.h"

#include <algorithm>
#include <type_traits>

#include "base/error.h"
#include "shoal/settings.h"

namespace shoal::settings {
namespace {

using E = EngineConfig;

constexpr Allowed between(double low, double high) { return {low, high}; }
constexpr Allowed words(std::string_view list) { return {0, 0, list}; }
constexpr Allowed kEither{};  // true or false

constexpr Row kRows[] = {
    {"model", &E::model, "Model", words("a folder in an official layout"),
     "model to speak with; empty: the built-in voice"},
    {"device", &E::device, "Model", words("auto, cpu, cuda, cuda:N"), "where to compute"},
    {"precision", &E::precision, "Model", words("auto, float32, bfloat16, float16"),
     "of weights and activations; auto: bfloat16 for 16-bit checkpoints, float32 for others; float16 needs a "
     "GPU"},
    {"cuda_graphs", &E::cuda_graphs, "Model", kEither,
     "CUDA graphs; plain launches are for debugging; no effect on a CPU"},
    {"semantic_only", &E::semantic_only, "Model", kEither,
     "never draw text tokens (the official S1 code may)"},

    {"threads", &E::threads, "Threads", between(0, 1024),
     "CPU threads in all; 0: every CPU this process may run on"},
    {"codec_threads", &E::codec_threads, "Threads", between(-1, 1024),
     "of these, threads of the codec alone; 0: none; -1: three eighths, or none of fewer than eight"},

    {"max_batch_size", &E::max_batch_size, "Batching", between(1, 1024),
     "sequences that one step advances by a frame"},
    {"max_streams", &E::max_streams, "Batching", between(0, 4096),
     "requests in generation at a time, slow readers included; 0: twice max_batch_size"},
    {"max_queue", &E::max_queue, "Batching", between(1, 1 << 20),
     "requests that may wait; one more is refused"},
    {"batch_timeout_ms", &E::batch_timeout_ms, "Batching", between(0, 60'000),
     "how long a request may be held back for company; with continuous batching waiting gains little"},
    {"batch_grouping", &E::batch_grouping, "Batching", kEither,
     "admit waiting requests of one voice together"},
    {"prefill_columns", &E::prefill_columns, "Batching", between(1, 1 << 16),
     "prompt columns that one step may prefill beside the running sequences"},

    {"kv_memory_mb", &E::kv_memory_mb, "Memory", between(0, 1 << 24),
     "MiB for keys and values; 0: kv_memory_fraction of what is free"},
    {"kv_memory_fraction", &E::kv_memory_fraction, "Memory", between(0.01, 0.95),
     "share of the memory free after loading that keys and values take"},
    {"kv_page_size", &E::kv_page_size, "Memory", between(1, 1024), "tokens in a page of keys and values"},
    {"prefix_cache", &E::prefix_cache, "Memory", kEither,
     "keep keys and values of prompts for requests that begin alike"},
    {"kv_cache_size", &E::kv_cache_size, "Memory", between(1, 1 << 20),
     "most voices whose prompt prefixes are kept, within the memory for keys and values"},

    {"references_dir", &E::references_dir, "Voices", words("a folder"),
     "named voices: NAME/clip.wav with its words in NAME/clip.lab"},
    {"reference_cache_size", &E::reference_cache_size, "Voices", between(1, 1 << 24),
     "most encoded clips kept in memory"},
    {"cache_dir", &E::cache_dir, "Voices", words("a folder, none"),
     "encoded clips on disk; empty: $XDG_CACHE_HOME/shoal or ~/.cache/shoal; none: nowhere"},
    {"cache_disk_mb", &E::cache_disk_mb, "Voices", between(0, 1 << 24),
     "most MiB of encoded clips on disk, the longest unused are removed; 0: no limit"},
    {"warm_voices", &E::warm_voices, "Voices", words("none, all, names with commas between"),
     "voices encoded in the background once the engine is ready"},
    {"with_encoder", &E::with_encoder, "Voices", kEither,
     "load the codec's encoder, which reference clips need"},

    {"request_timeout_s", &E::request_timeout_s, "Requests", between(0, 24 * 3600),
     "deadline of a request that names none; 0: none"},
    {"prefetch_s", &E::prefetch_s, "Requests", between(1, 3600),
     "seconds of sound that may wait for a slow reader before its sequence pauses"},
    {"drop_cache_on_oom", &E::drop_cache_on_oom, "Requests", kEither,
     "out of memory: drop cached voices and prefixes and retry once before failing a request"},
    {"warm_up", &E::warm_up, "Requests", kEither, "speak a sentence before the engine says it is ready"},
};

constexpr Alias kAliases[] = {
    {Source::environment, "S1_MINI_DEVICE", "device"},
    {Source::environment, "S1_MINI_PRECISION", "precision"},
    {Source::environment, "S1_MINI_COMPILE", "cuda_graphs"},
    {Source::environment, "S1_MINI_ENABLE_BATCHING", "max_batch_size", true, "", "1"},
    {Source::environment, "S1_MINI_BATCH_SIZE", "max_batch_size"},
    {Source::environment, "S1_MINI_BATCH_TIMEOUT", "batch_timeout_ms"},
    {Source::environment, "S1_MINI_BATCH_TIMEOUT_MS", "batch_timeout_ms"},
    {Source::environment, "S1_MINI_BATCH_GROUPING", "batch_grouping"},
    {Source::environment, "S1_MINI_KV_CACHE_SIZE", "kv_cache_size"},
    {Source::environment, "S1_MINI_REFERENCE_CACHE_SIZE", "reference_cache_size"},
    {Source::environment, "S1_MINI_REQUEST_TIMEOUT_S", "request_timeout_s"},
    {Source::environment, "S1_MINI_VRAM_CLEAR_ON_OOM", "drop_cache_on_oom"},
    {Source::file, "enable_batching", "max_batch_size", true, "", "1"},
    {Source::flag, "half", "precision", true, "float16", ""},
    {Source::flag, "compile", "cuda_graphs"},
};

constexpr std::string_view kOtherVariables[] = {"SHOAL_CONFIG", "SHOAL_VOICE_DIR", "SHOAL_CPU_ISA",
                                                "SHOAL_LOG_LEVEL"};

template <typename T>
constexpr bool is_counted = std::is_same_v<T, int> || std::is_same_v<T, int64_t>;

[[noreturn]] void out_of_range(const Row& row, const Value& value) {
  fail(ErrorCode::invalid_argument, row.key, ": expected ", row.range(), ", got ", to_toml(value));
}

// Bounds of integers are below 2^53, so doubles hold them exactly.
void check_value(const Row& row, const Value& value) {
  const auto outside = [&](auto number) {
    return !(number >= static_cast<decltype(number)>(row.allowed.low) &&
             number <= static_cast<decltype(number)>(row.allowed.high));
  };
  if (const auto* integer = std::get_if<int64_t>(&value); integer && outside(*integer))
    out_of_range(row, value);
  if (const auto* number = std::get_if<double>(&value); number && outside(*number)) out_of_range(row, value);
  if (const auto* text = std::get_if<std::string>(&value); text && text->find('\0') != std::string::npos)
    fail(ErrorCode::invalid_argument, row.key, ": expected a text without NUL characters");
}

Setting setting_of(const Row& row) {
  Setting setting{.key = std::string(row.key),
                  .type = std::string(name_of(row.type())),
                  .group = std::string(row.group),
                  .help = std::string(row.help),
                  .range = row.range(),
                  .default_value = to_toml(get(row, {}))};
  for (const Alias& alias : aliases()) {
    if (alias.key == row.key)
      setting.older_names.push_back(concat(alias.source == Source::flag ? "--" : "", alias.name));
  }
  return setting;
}

}  // namespace

Type Row::type() const {
  return std::visit(
      []<typename T>(T E::*) {
        if constexpr (std::is_same_v<T, bool>) return Type::boolean;
        if constexpr (is_counted<T>) return Type::integer;
        if constexpr (std::is_same_v<T, double>) return Type::number;
        return Type::text;
      },
      field);
}

std::string Row::range() const {
  if (type() == Type::boolean) return "";
  if (type() == Type::text) return std::string(allowed.words);
  const auto shown = [&](double bound) {
    return type() == Type::integer ? to_toml(static_cast<int64_t>(bound)) : to_toml(bound);
  };
  return concat(shown(allowed.low), " to ", shown(allowed.high));
}

std::span<const Row> rows() { return kRows; }

const Row* find_row(std::string_view key) {
  const auto* found =
      std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& r) { return r.key == key; });
  return found == std::end(kRows) ? nullptr : found;
}

Value get(const Row& row, const EngineConfig& config) {
  return std::visit(
      [&]<typename T>(T E::* field) -> Value {
        if constexpr (std::is_same_v<T, Precision>)
          return std::string(name_of(config.*field));
        else if constexpr (is_counted<T>)
          return static_cast<int64_t>(config.*field);
        else
          return config.*field;
      },
      row.field);
}

void set(const Row& row, const Value& value, EngineConfig& config) {
  check_value(row, value);
  std::visit(
      [&]<typename T>(T E::* field) {
        if constexpr (std::is_same_v<T, Precision>)
          config.*field = parse_precision(std::get<std::string>(value));
        else if constexpr (is_counted<T>)
          config.*field = static_cast<T>(std::get<int64_t>(value));
        else
          config.*field = std::get<T>(value);
      },
      row.field);
}

void check_range(const Row& row, const EngineConfig& config) { check_value(row, get(row, config)); }

std::span<const Alias> aliases() { return kAliases; }

std::span<const std::string_view> other_variables() { return kOtherVariables; }

}  // namespace shoal::settings

namespace shoal {

std::span<const Setting> engine_settings() {
  static const std::vector<Setting> settings = [] {
    std::vector<Setting> all;
    for (const settings::Row& row : settings::rows()) all.push_back(settings::setting_of(row));
    return all;
  }();
  return settings;
}

std::string flag_of(const Setting& setting) {
  std::string flag = "--" + setting.key;
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

std::string variable_of(const Setting& setting) {
  std::string variable = "SHOAL_" + setting.key;
  std::transform(variable.begin(), variable.end(), variable.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  return variable;
}

}  // namespace shoal
