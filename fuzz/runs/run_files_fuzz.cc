// The files of a run: any bytes are read or refused, and what is read can be drawn.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <unistd.h>

#include "base/error.h"
#include "bench/runs/drawings.h"
#include "bench/runs/run_files.h"

namespace {

struct ScratchFolder {
  ScratchFolder() { std::filesystem::create_directories(path); }
  ~ScratchFolder() { std::filesystem::remove_all(path); }
  const std::string path =
      std::filesystem::temp_directory_path() / ("shoal_run_fuzz_" + std::to_string(getpid()));
};

const std::string& folder() {
  static const ScratchFolder scratch;
  return scratch.path;
}

void write(const std::string& name, const std::string& bytes) {
  std::ofstream(folder() + "/" + name, std::ios::binary | std::ios::trunc) << bytes;
}

}  // namespace

// The first byte says which file the rest is.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  write("run.json", R"({"schema":"shoal-bench-run-1"})");
  write("summary.json", R"({"schema":"shoal-bench-summary-1","levels":[{},{}]})");
  write("requests.jsonl", "{\"level\":1,\"outcome\":\"completed\",\"latency_ms\":3}\n");
  const char* const names[] = {"run.json", "summary.json", "requests.jsonl"};
  write(names[data[0] % 3], std::string(reinterpret_cast<const char*>(data) + 1, size - 1));
  try {
    shoal::runs::drawings_of(shoal::runs::read_run(folder()));
  } catch (const shoal::Error&) {
  }
  return 0;
}
