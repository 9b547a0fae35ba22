#include "bench/load/reference_clip.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>

#include "base/base64.h"
#include "base/error.h"
#include "base/file.h"
#include "bench/load/little_endian.h"

namespace shoal::load {
namespace {

constexpr int64_t kMostClipBytes = int64_t{32} << 20, kMostWordsBytes = 64 << 10;
constexpr size_t kLeastSoundBytes = 6'400;  // a fifth of a second at 16 kHz
constexpr size_t kChangedSamples = 64;
// 64 samples are 128 bytes; base64 takes three bytes at a time.
constexpr size_t kChangingBytes = 129;

// The place of the samples in a WAV file of 16-bit PCM, and their bytes.
std::optional<std::pair<size_t, size_t>> find_samples(std::string_view file) {
  if (file.size() < 12 || !file.starts_with("RIFF") || file.substr(8, 4) != "WAVE") return std::nullopt;
  bool is_pcm = false;
  for (size_t at = 12; at + 8 <= file.size();) {
    const std::string_view name = file.substr(at, 4);
    const size_t size = little_endian(file, at + 4, 4), begin = at + 8, left = file.size() - begin;
    if (name == "fmt " && size >= 16 && size <= left)
      is_pcm = little_endian(file, begin, 2) == 1 && little_endian(file, begin + 14, 2) == 16;
    if (name == "data") return is_pcm ? std::optional(std::pair(begin, std::min(size, left))) : std::nullopt;
    if (size > left) return std::nullopt;
    at = begin + size + size % 2;
  }
  return std::nullopt;
}

std::string words_beside(const std::string& path) {
  for (const char* ending : {".lab", ".txt"}) {
    const std::string beside = std::filesystem::path(path).replace_extension(ending).string();
    if (!std::filesystem::exists(beside)) continue;
    std::string words = read_file(beside, kMostWordsBytes);
    words.erase(words.find_last_not_of(" \t\r\n") + 1);
    if (words.empty())
      fail(ErrorCode::invalid_argument, "reference: ", beside,
           ": expected the words of the clip, found none");
    return words;
  }
  fail(ErrorCode::not_found, "reference: ", path,
       ": expected its words in a file beside it that ends in .lab or .txt");
}

}  // namespace

ReferenceClip::ReferenceClip(const std::string& file, std::string words, const std::string& name)
    : base64_(to_base64(file)), words_(std::move(words)) {
  const auto samples = find_samples(file);
  if (!samples || samples->second < kLeastSoundBytes)
    fail(ErrorCode::invalid_argument, "reference: ", name,
         ": expected a WAV file of 16-bit PCM with a fifth of a second of sound or more");
  const auto [begin, bytes] = *samples;
  changes_at_ = begin + bytes / 4 * 2;
  while (changes_at_ % 3 != 0) changes_at_ += 2;
  changing_ = file.substr(changes_at_, kChangingBytes);
}

std::string ReferenceClip::base64(std::optional<uint64_t> newness) const {
  if (!newness) return base64_;
  std::string bytes = changing_;
  for (size_t i = 0; i < kChangedSamples; ++i)
    bytes[2 * i] = static_cast<char>((bytes[2 * i] & ~1) | static_cast<char>(*newness >> i & 1));
  std::string text = base64_;
  text.replace(changes_at_ / 3 * 4, base64_size(kChangingBytes), to_base64(bytes));
  return text;
}

ReferenceClip read_reference_clip(const std::string& path) {
  const std::string file = read_file(path, kMostClipBytes);
  return {file, words_beside(path), path};
}

}  // namespace shoal::load
