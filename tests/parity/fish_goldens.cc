#include "tests/parity/fish_goldens.h"

#include <algorithm>

#include "base/error.h"
#include "base/file.h"

namespace shoal::parity {
namespace {

constexpr int64_t kMaxBytes = int64_t{64} << 20;
constexpr const char *kS1 = "/lm_goldens", *kS2 = "/s2_goldens";

std::unique_ptr<const text::Tokenizer> tokenizer_of(const std::string& dir) {
  const std::string special = dir + "/special_tokens.json";
  for (const char* name : {"/tokenizer.tiktoken", "/tokenizer.json"}) {
    if (is_regular_file(dir + name))
      return text::load_tokenizer(dir + name, is_regular_file(special) ? special : "");
  }
  return nullptr;
}

}  // namespace

bool FishGoldens::lies_in(const std::string& dir) {
  return std::ranges::any_of(std::initializer_list<const char*>{kS1, kS2}, [&](const char* name) {
    return is_regular_file(dir + name + ".json") || is_regular_file(dir + name + ".safetensors");
  });
}

FishGoldens FishGoldens::open(const std::string& dir) {
  if (!lies_in(dir)) fail(ErrorCode::not_found, dir, ": neither lm_goldens.* nor s2_goldens.*");
  const bool s1 = is_regular_file(dir + kS1 + ".json") || is_regular_file(dir + kS1 + ".safetensors");
  const std::string base = dir + (s1 ? kS1 : kS2);
  return {.dir = dir,
          .is_s1 = s1,
          .prefix = s1 ? "lm." : "s2.",
          .document = Json::read_file(base + ".json", kMaxBytes),
          .tensors = Goldens(base + ".safetensors"),
          .tokenizer = tokenizer_of(dir)};
}

const Json::Object& FishGoldens::cases() const {
  static const Json::Object none;
  const Json* found = document.find("cases");
  return found ? found->as_object() : none;
}

const Json::Array* FishGoldens::list(const std::string& key) const {
  const Json* found = document.find(key);
  return found && !found->as_array().empty() ? &found->as_array() : nullptr;
}

std::vector<std::string> strings_of(const Json* array) {
  std::vector<std::string> all;
  if (!array) return all;
  for (const Json& item : array->as_array()) all.push_back(item.as_string());
  return all;
}

}  // namespace shoal::parity
