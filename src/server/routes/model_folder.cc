#include "server/routes/model_folder.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/error.h"
#include "base/printable.h"

namespace shoal::server {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostNameBytes = 255, kMostUrlBytes = 4096;

bool is_alphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// Without an empty last part ("/a/b/").
fs::path tidied(const fs::path& path) {
  const fs::path tidy = path.lexically_normal();
  return tidy.has_filename() ? tidy : tidy.parent_path();
}

// Part by part: /a/bc is not below /a/b.
bool is_below(const fs::path& root, const fs::path& path) {
  const auto [end, rest] = std::mismatch(root.begin(), root.end(), path.begin(), path.end());
  return end == root.end() && rest != path.end();
}

[[noreturn]] void refuse_url(ErrorCode code, std::string_view url, std::string_view why) {
  fail(code, "url: ", why, ", got \"", printable(url), "\"");
}

}  // namespace

void check_new_name(const std::string& name) {
  const auto fits = [](char c) { return is_alphanumeric(c) || c == '.' || c == '-' || c == '_'; };
  if (!name.empty() && name.size() <= kMostNameBytes && is_alphanumeric(name.front()) &&
      std::ranges::all_of(name, fits))
    return;
  fail(ErrorCode::invalid_argument, "model_name: expected 1 to ", kMostNameBytes,
       " letters, digits, dots, dashes and underscores, a letter or digit first, got \"", printable(name),
       "\"");
}

std::string folder_below(const std::string& root, std::string_view url) {
  constexpr std::string_view kFile = "file://";
  std::string_view text = url;
  if (text.starts_with(kFile)) text.remove_prefix(kFile.size());
  const bool has_nul = text.find('\0') != std::string_view::npos;
  if (!text.starts_with('/') || text.size() > kMostUrlBytes || has_nul)
    refuse_url(ErrorCode::invalid_argument, url, "expected the absolute path of a folder");
  const fs::path wanted(text);
  // Said before the file system is asked: what lies elsewhere is nobody's business.
  const fs::path plain_root = tidied(root);
  if (std::ranges::count(wanted, fs::path("..")) > 0)
    refuse_url(ErrorCode::invalid_argument, url, "expected a path without ..");
  std::error_code wrong;
  const fs::path real_root = fs::canonical(plain_root, wrong);
  if (wrong) refuse_url(ErrorCode::not_found, url, "models_root is not there");
  const fs::path tidy = tidied(wanted);
  if (!is_below(plain_root, tidy) && !is_below(real_root, tidy))
    refuse_url(ErrorCode::invalid_argument, url, "expected a folder below models_root");
  const fs::path real = fs::canonical(tidy, wrong);
  if (wrong) refuse_url(ErrorCode::not_found, url, "there is no such folder");
  if (!is_below(real_root, real))
    refuse_url(ErrorCode::invalid_argument, url, "expected a folder below models_root, links followed");
  if (!fs::is_directory(real, wrong)) refuse_url(ErrorCode::invalid_argument, url, "expected a folder");
  return real.string();
}

}  // namespace shoal::server
