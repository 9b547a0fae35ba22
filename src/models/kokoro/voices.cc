#include "models/kokoro/voices.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/file.h"
#include "base/log.h"
#include "base/printable.h"
#include "base/voice_name.h"

namespace shoal::kokoro {
namespace {

namespace fs = std::filesystem;

// The order in which files claim names.
constexpr std::string_view kEndings[] = {".pt", ".bin", ".npz"};

size_t rank_of(const std::string& path) {
  const std::string ending = fs::path(path).extension().string();
  return static_cast<size_t>(std::ranges::find(kEndings, ending) - std::begin(kEndings));
}

// What may hold voices, in order. Hidden files are somebody else's ("._af_heart.pt").
std::vector<std::string> candidates_in(const std::string& dir) {
  std::vector<std::string> paths;
  std::error_code error;
  fs::directory_iterator entry(dir, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string path = entry->path().string();
    if (!file_name(path).starts_with('.') && rank_of(path) < std::size(kEndings) && is_regular_file(path))
      paths.push_back(path);
  }
  std::ranges::sort(paths, {}, [](const std::string& path) { return std::pair(rank_of(path), path); });
  return paths;
}

std::string stem_of(const std::string& path) { return fs::path(path).stem().string(); }

}  // namespace

Voices::Voices(std::string dir) : dir_(std::move(dir)) {
  if (!is_directory(dir_))
    fail(ErrorCode::not_found, "folder of voices \"", dir_, "\" does not exist: name one with NAME.pt files");
  const std::vector<std::string> paths = candidates_in(dir_);
  for (const std::string& path : paths) add_file(path);
  for (const auto& [name, file] : files_) names_.push_back(name);
}

void Voices::add_file(const std::string& path) {
  try {
    const VoicesFile file = inspect_voices(path);
    if (file.format != VoiceFormat::npz) return add(stem_of(path), {path, file.format});
    for (const std::string& name : file.names) add(name, {path, file.format});
  } catch (const Error& error) {  // one bad file does not hide the others
    log(LogLevel::warning, "voices: ", error.message());
    unusable_.emplace(stem_of(path), error);
  }
}

void Voices::add(const std::string& name, File file) {
  if (!is_voice_name(name)) {
    log(LogLevel::warning, "voices: ", file.path, ": \"", printable(name), "\" is no name of a voice");
    return;
  }
  // A single-voice file always takes precedence over an archive, whatever their names.
  const auto [entry, is_new] = files_.emplace(name, file);
  if (!is_new && entry->second.format == VoiceFormat::npz && file.format != VoiceFormat::npz)
    entry->second = std::move(file);
}

VoiceMix Voices::parse(std::string_view expression) const {
  try {
    return parse_voice_mix(expression, [this](std::string_view name) { return contains(name); });
  } catch (const Error& error) {
    const auto broken = unusable_.find(expression);
    if (error.code() == ErrorCode::not_found && broken != unusable_.end()) throw Error(broken->second);
    throw;
  }
}

Voice Voices::get(std::string_view expression) const {
  const VoiceMix mix = parse(expression);
  const std::string key = mix.key();
  const std::scoped_lock lock(mutex_);
  Pack pack = mix.is_one_voice() ? single(key) : cached(key);
  if (!pack) pack = remember(key, mixed(mix));
  return {.key = key, .traits = traits_of(mix.first), .pack = std::move(pack)};
}

// With the mutex held, as all that follow.
Voices::Pack Voices::cached(const std::string& key) const {
  const auto found = std::ranges::find(recent_, key, &Cached::key);
  if (found == recent_.end()) return nullptr;
  recent_.splice(recent_.begin(), recent_, found);
  return found->pack;
}

Voices::Pack Voices::remember(const std::string& key, VoicePack pack) const {
  recent_.push_front({key, std::make_shared<const VoicePack>(std::move(pack))});
  if (recent_.size() > kCachedPacks) recent_.pop_back();
  return recent_.front().pack;
}

Voices::Pack Voices::single(const std::string& name) const {
  if (Pack pack = cached(name)) return pack;
  const File& file = files_.at(name);
  return remember(name, read_voice(file.path, file.format, name));
}

// Sums in double, in the order of names, and rounds once.
VoicePack Voices::mixed(const VoiceMix& mix) const {
  std::vector<double> sums(static_cast<size_t>(VoicePack::kRows * VoicePack::kColumns), 0.0);
  for (const VoiceMix::Part& part : mix.parts) {
    const Pack pack = single(part.voice);
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += part.share * double{pack->values()[i]};
  }
  return {std::vector<float>(sums.begin(), sums.end()), mix.key()};
}

std::string Voices::default_voice(char language) const {
  const std::string_view published = published_default(language);
  if (published.empty())
    fail(ErrorCode::invalid_argument, "language: expected one of a, b, e, f, h, i, j, p, z, got \"",
         printable({&language, 1}), "\"");
  if (contains(published)) return std::string(published);
  for (const std::string& name : names_) {
    const std::optional<VoiceTraits> traits = traits_of(name);
    if (traits && traits->language == language) return name;
  }
  fail(ErrorCode::not_found, "language: no voice of the model speaks ", language);
}

}  // namespace shoal::kokoro
