#include "cli/kept_sounds.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "audio/file_writer.h"
#include "base/error.h"
#include "base/printable.h"

namespace shoal::cli {

namespace fs = std::filesystem;

KeptSounds::KeptSounds(std::string dir) : dir_(std::move(dir)) {
  std::error_code error;
  fs::create_directories(dir_, error);
  if (!fs::is_directory(dir_, error)) fail(ErrorCode::io, printable(dir_), ": cannot be made");
  if (!fs::is_empty(dir_, error))
    fail(ErrorCode::invalid_argument, printable(dir_), ": holds files; expected a new folder");
}

void KeptSounds::keep(const std::string& mode, int level, size_t text_number, const std::string& text,
                      std::span<const float> samples, int sample_rate_hz) {
  nlohmann::ordered_json line = {
      {"level", level}, {"index", text_number}, {"outcome", "completed"}, {"texts", {text}}};
  if (samples.empty()) {
    line["audio"] = nullptr;
  } else {
    char name[64];
    std::snprintf(name, sizeof name, "%s_%03zu.wav", mode.c_str(), text_number + 1);
    line["audio"] = name;
    audio::AudioFileWriter file(dir_ + "/" + name, audio::Format::wav, {.sample_rate_hz = sample_rate_hz});
    file.write(samples);
    file.commit();
  }
  const std::string path = dir_ + "/requests.jsonl";
  std::ofstream list(path, std::ios::app);
  list << line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << '\n';
  list.close();
  if (!list) fail(ErrorCode::io, printable(path), ": cannot be written");
}

}  // namespace shoal::cli
