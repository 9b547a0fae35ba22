// Output of a worker, cut into lines.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shoal::fleet {

// `line` of the worker `name`, as the fleet prints it: "w1 | line"; a JSON object gets the field "worker".
std::string named_line(std::string_view name, std::string_view line);

class LogLines {
 public:
  static constexpr size_t kLongest = 64 * 1024;  // bytes of a line; a longer one is cut into several

  // The lines that `bytes` complete, without their ends.
  std::vector<std::string> add(std::string_view bytes);
  // What came after the last end of a line.
  std::vector<std::string> finish();
  const std::string& last() const { return last_; }

 private:
  void take(std::vector<std::string>& lines);

  std::string begun_, last_;
};

}  // namespace shoal::fleet
