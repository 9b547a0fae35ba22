// Arbitrary bytes as a configuration file: entries in the order of their lines, or an Error of the caller's
// kind whose message is one line of UTF-8.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "base/error.h"
#include "settings/toml_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using shoal::is_utf8;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    int line = 0;
    for (const shoal::settings::FileEntry& entry : shoal::settings::parse_toml(text, "shoal.toml")) {
      if (entry.line <= line || !is_utf8(entry.key)) std::abort();
      if (const auto* value = std::get_if<std::string>(&entry.value); value && !is_utf8(*value)) std::abort();
      line = entry.line;
    }
  } catch (const shoal::Error& error) {
    const bool one_line = error.message().find('\n') == std::string::npos;
    if (!shoal::is_callers_fault(error.code()) || !one_line || !is_utf8(error.message())) std::abort();
  }
  return 0;
}
