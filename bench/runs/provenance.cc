#include "bench/runs/provenance.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sys/utsname.h>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/version.h"

namespace shoal::runs {
namespace {

using nlohmann::ordered_json;

std::vector<std::string> command_line() {
  std::ifstream file("/proc/self/cmdline");
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) {
    const bool after_secret = !words.empty() && (words.back() == "--api-key" || words.back() == "--header");
    if (after_secret) word = "...";
    if (word.starts_with("--api-key=")) word = "--api-key=...";
    if (word.starts_with("--header=")) word = "--header=...";
    words.push_back(std::move(word));
  }
  return words;
}

ordered_json machine() {
  utsname system{};
  uname(&system);
  std::string processor;
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; processor.empty() && std::getline(file, line);)
    if (line.starts_with("model name")) processor = line.substr(std::min(line.size(), line.find(':') + 2));
  return {{"host", system.nodename},
          {"system", concat(system.sysname, " ", system.release, " ", system.machine)},
          {"processor", processor},
          {"threads", std::thread::hardware_concurrency()}};
}

}  // namespace

ordered_json provenance() {
  return {{"program", "shoal " + version()},
          {"version", version()},
          {"commit", commit()},
          {"command", command_line()},
          {"machine", machine()}};
}

std::string config_hash(const ordered_json& settings) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : settings.dump(-1, ' ', false, ordered_json::error_handler_t::replace))
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

}  // namespace shoal::runs
