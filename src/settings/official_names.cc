#include "settings/official_names.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "settings/value.h"

namespace shoal::settings {
namespace {

constexpr OfficialName kNames[] = {
    {"mode", true, false, "of the official server: tts"},
    {"decoder_config_name", true, false, "of the official server: modded_dac_vq"},
    {kDecoderPath, true, false, "of the official server: codec.pth of the model folder"},
    {"workers", true, true, "of the official server: 1"},
    {kCompileBackend, false, false, ""},
};

void check_workers(const std::string& text, const std::string& where) {
  const int64_t workers = [&] {
    try {
      return std::get<int64_t>(parse_value(Type::integer, text));
    } catch (const Error& error) {
      fail(error.code(), where, ": ", error.message());
    }
  }();
  if (workers < 1) fail(ErrorCode::invalid_argument, where, ": expected 1, got ", workers);
  if (workers > 1)
    fail(ErrorCode::unsupported, where, ": one process with one engine serves everybody; expected 1, got ",
         workers,
         " (max_batch_size says how many it serves at a time; `shoal fleet` starts several processes)");
}

void check_word(const std::string& text, std::string_view wanted, const std::string& where,
                std::string_view why) {
  if (text != wanted)
    fail(ErrorCode::unsupported, where, ": ", why, "; expected ", wanted, ", got \"", printable(text), "\"");
}

}  // namespace

std::span<const OfficialName> official_names() { return kNames; }

bool check_official_name(std::string_view name, const std::string& text, const std::string& where) {
  if (std::ranges::find(kNames, name, &OfficialName::name) == std::end(kNames)) return false;
  if (name == "workers") check_workers(text, where);
  if (name == "mode") check_word(text, "tts", where, "this server speaks, and has no other mode");
  if (name == "decoder_config_name")
    check_word(text, "modded_dac_vq", where, "the codec of the published models is the only one");
  if (name == kCompileBackend)
    fail(ErrorCode::unsupported, where,
         ": there is nothing to compile at run time, so there is no backend to choose; unset it");
  return true;
}

void check_decoder_path(const std::string& path, const std::string& model) {
  namespace fs = std::filesystem;
  const auto whole = [](const fs::path& given) { return fs::absolute(given).lexically_normal(); };
  if (!model.empty() && !path.empty() && whole(path) == whole(fs::path(model) / "codec.pth")) return;
  fail(ErrorCode::unsupported,
       "flag --decoder-checkpoint-path: the codec comes from the model folder; expected ",
       model.empty() ? std::string("no such flag with the built-in voice")
                     : printable((fs::path(model) / "codec.pth").string(), kMaxPath),
       ", got \"", printable(path, kMaxPath), "\"");
}

}  // namespace shoal::settings
