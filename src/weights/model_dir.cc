#include "weights/model_dir.h"

#include <filesystem>
#include <initializer_list>
#include <string_view>
#include <system_error>

#include "base/error.h"
#include "base/file.h"

namespace shoal::weights {
namespace {

// The first of `names` that is a file in `folder`, or an empty string. Refuses an entry that is not a file (a
// FIFO).
std::string first_present(const std::string& folder, std::initializer_list<std::string_view> names) {
  for (std::string_view name : names) {
    std::string path = concat(folder, name);
    if (is_regular_file(path)) return path;
    std::error_code ignored;
    if (std::filesystem::exists(path, ignored))
      fail(ErrorCode::invalid_argument, path, ": expected a regular file");
  }
  return {};
}

std::string required(const std::string& folder, std::string_view what,
                     std::initializer_list<std::string_view> names) {
  std::string path = first_present(folder, names);
  if (!path.empty()) return path;
  std::string list;
  for (std::string_view name : names) list += concat(list.empty() ? "" : " or ", name);
  fail(ErrorCode::not_found, folder, ": ", what, " is missing: put ", list,
       " of the published model into this folder, or name the folder that holds it");
}

}  // namespace

ModelFiles find_model_files(const std::string& dir) {
  if (!is_directory(dir))
    fail(ErrorCode::not_found, "model folder \"", dir, "\" ",
         is_regular_file(dir)
             ? "is a file: name the folder that holds it"
             : "does not exist: name a folder with config.json, weights, codec and tokenizer");
  const std::string folder = dir.ends_with('/') ? dir : dir + "/";
  ModelFiles files;
  files.dir = dir;
  files.config = required(folder, "the configuration", {"config.json"});
  files.weights = required(folder, "the model's weights",
                           {"model.safetensors.index.json", "model.safetensors", "model.pth"});
  files.codec = required(folder, "the audio codec", {"codec.safetensors", "codec.pth"});
  files.codec_config = first_present(folder, {"codec_config.json"});
  files.tokenizer = required(folder, "the tokenizer", {"tokenizer.tiktoken", "tokenizer.json"});
  files.special_tokens = first_present(folder, {"special_tokens.json"});
  return files;
}

}  // namespace shoal::weights
