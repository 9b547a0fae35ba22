#include "weights/name_maps.h"

#include <algorithm>
#include <string>

#include "base/error.h"

namespace shoal::weights {
namespace {

constexpr std::string_view kS2Text = "text_model.model.";
constexpr std::string_view kS2Audio = "audio_decoder.";

bool any_name(const Checkpoint& checkpoint, FunctionRef<bool(std::string_view)> matches) {
  return std::ranges::any_of(checkpoint.tensors(),
                             [&](const StoredTensor& tensor) { return matches(tensor.name); });
}

// Every occurrence of `part` taken out, left to right.
std::string without(std::string_view name, std::string_view part) {
  std::string result;
  for (size_t at = name.find(part); at != std::string_view::npos; at = name.find(part)) {
    result += name.substr(0, at);
    name.remove_prefix(at + part.size());
  }
  return result += name;
}

std::string s2_name(std::string_view name) {
  if (name.starts_with(kS2Text)) return std::string(name.substr(kS2Text.size()));
  if (!name.starts_with(kS2Audio)) return std::string(name);
  const std::string_view rest = name.substr(kS2Audio.size());
  return rest.starts_with("codebook_embeddings.") ? std::string(rest) : concat("fast_", rest);
}

}  // namespace

void normalise_dual_ar_names(Checkpoint& checkpoint) {
  const bool is_s2 = any_name(checkpoint, [](std::string_view name) {
    return name.starts_with(kS2Text) || name.starts_with(kS2Audio);
  });
  if (is_s2) checkpoint.rename([](std::string_view name) { return s2_name(name); });
  const bool wrapped =
      !checkpoint.tensors().empty() && checkpoint.tensors().front().name.starts_with("model.");
  checkpoint.rename([&](std::string_view name) -> std::string {
    std::string plain = wrapped ? without(name, "model.") : std::string(name);
    return plain.find("audio_") == std::string::npos ? plain : std::string();
  });
}

void normalise_codec_names(Checkpoint& checkpoint) {
  constexpr std::string_view kPart = "generator.";
  const bool training = any_name(
      checkpoint, [](std::string_view name) { return name.find("generator") != std::string_view::npos; });
  checkpoint.rename([&](std::string_view name) -> std::string {
    if (name.ends_with(".freqs_cis") || name.ends_with(".causal_mask")) return {};
    if (!training) return std::string(name);
    return name.find(kPart) == std::string_view::npos ? std::string() : without(name, kPart);
  });
}

void normalise_kokoro_names(Checkpoint& checkpoint) {
  constexpr std::string_view kWrapper = "module.";
  checkpoint.rename([&](std::string_view name) -> std::string {
    const size_t rest = std::min(name.find('.'), name.size() - 1) + 1;
    if (!name.substr(rest).starts_with(kWrapper)) return std::string(name);
    return concat(name.substr(0, rest), name.substr(rest + kWrapper.size()));
  });
}

bool has_split_qkv(const Checkpoint& checkpoint, std::string_view attention_prefix) {
  return checkpoint.contains(concat(attention_prefix, ".wq.weight"));
}

}  // namespace shoal::weights
