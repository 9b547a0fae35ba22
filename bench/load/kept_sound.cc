#include "bench/load/kept_sound.h"

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "bench/load/little_endian.h"

namespace shoal::load {
namespace {

constexpr uint64_t kHeadBytes = 44, kPcmTag = 1, kFloatTag = 3;

}  // namespace

std::string wav_of(const RequestRecord& record) {
  const SoundFormat& format = record.format;
  const auto sample = static_cast<uint64_t>(format.bytes_per_sample),
             channels = static_cast<uint64_t>(format.channels),
             rate_hz = static_cast<uint64_t>(format.rate_hz);
  const uint64_t frame = sample * channels, bytes = record.samples.size() / frame * frame;
  return concat("RIFF", little_endian(bytes + kHeadBytes - 8, 4), "WAVEfmt ", little_endian(16, 4),
                little_endian(format.is_float ? kFloatTag : kPcmTag, 2), little_endian(channels, 2),
                little_endian(rate_hz, 4), little_endian(rate_hz * frame, 4), little_endian(frame, 2),
                little_endian(8 * sample, 2), "data", little_endian(bytes, 4)) +
         record.samples.substr(0, bytes);
}

std::string keep_sound(const std::string& folder, size_t level, const RequestRecord& record) {
  const std::string name = concat("audio/", level, "-", record.index, ".wav");
  std::error_code error;
  std::filesystem::create_directories(folder + "/audio", error);
  std::ofstream file(folder + "/" + name, std::ios::binary | std::ios::trunc);
  const std::string bytes = wav_of(record);
  file.write(bytes.data(), std::ssize(bytes));
  file.close();
  if (!file) fail(ErrorCode::io, folder, "/", name, ": cannot be written");
  return name;
}

}  // namespace shoal::load
