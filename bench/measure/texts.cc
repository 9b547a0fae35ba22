#include "bench/measure/texts.h"

#include <algorithm>
#include <cstdint>

#include "base/error.h"
#include "base/file.h"

namespace shoal::bench {
namespace {

constexpr int64_t kMostTextsBytes = int64_t{16} << 20;

}  // namespace

std::vector<std::string> read_texts(const std::string& path) {
  const std::string bytes = read_file(path, kMostTextsBytes);
  std::vector<std::string> texts;
  for (size_t begin = 0; begin < bytes.size();) {
    const size_t end = std::min(bytes.find('\n', begin), bytes.size());
    std::string line = bytes.substr(begin, end - begin);
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ' || line.back() == '\t'))
      line.pop_back();
    if (!line.empty()) texts.push_back(std::move(line));
    begin = end + 1;
  }
  if (texts.empty()) fail(ErrorCode::invalid_argument, path, ": expected a text on each line, found none");
  return texts;
}

}  // namespace shoal::bench
