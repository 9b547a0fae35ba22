// Settings of the servers that Shoal replaces which have no counterpart here. A value that asks for what
// Shoal does anyway is accepted; any other is refused with a reason.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace shoal::settings {

struct OfficialName {
  std::string_view name;  // key of a flag or of the file, or a variable
  bool is_flag = false, is_key = false;
  std::string_view help;
};

std::span<const OfficialName> official_names();

constexpr std::string_view kCompileBackend = "S1_MINI_COMPILE_BACKEND";
constexpr std::string_view kDecoderPath = "decoder_checkpoint_path";

// True when `name` is one of them and the value `text` is acceptable. `where` names the setting in messages.
// Throws Error: unsupported for values that Shoal does not support, invalid_argument for meaningless ones.
bool check_official_name(std::string_view name, const std::string& text, const std::string& where);

// The codec that --decoder-checkpoint-path names must be the one of the model folder. Throws
// Error(unsupported).
void check_decoder_path(const std::string& path, const std::string& model);

}  // namespace shoal::settings
