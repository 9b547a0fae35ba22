#include "models/kokoro/voice_pack.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/philox.h"
#include "weights/npz.h"
#include "weights/tensor_location.h"
#include "weights/torch_zip.h"

namespace shoal::kokoro {
namespace {

constexpr size_t kFloats = static_cast<size_t>(VoicePack::kRows * VoicePack::kColumns);
constexpr size_t kRawBytes = kFloats * sizeof(float);

bool is_zip(std::span<const std::byte> bytes) {
  constexpr std::string_view kMagic = "PK\x03\x04";
  return bytes.size() >= kMagic.size() && std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) == 0;
}

VoiceFormat format_of(const MappedFile& file) {
  const std::span<const std::byte> bytes = file.bytes();
  if (is_zip(bytes)) return weights::is_npz(bytes, file.path()) ? VoiceFormat::npz : VoiceFormat::tensor;
  if (bytes.size() == kRawBytes) return VoiceFormat::raw;
  if (!bytes.empty() && bytes.size() % kRawBytes == 0)
    fail(ErrorCode::unsupported, file.path(), ": it holds ", bytes.size() / kRawBytes,
         " voices end to end, without their names; use one file a voice, or an npz");
  fail(ErrorCode::corrupt_file, file.path(), ": expected a voice (a torch tensor, ", kRawBytes,
       " bytes of floats, or an npz), found ", bytes.size(), " bytes of something else");
}

void check_shape(const weights::TensorLocation& voice, const std::string& path) {
  const Shape flat = {VoicePack::kRows, VoicePack::kColumns};
  const Shape published = {VoicePack::kRows, 1, VoicePack::kColumns};
  if (voice.dtype != DType::f32 || (voice.shape != published && voice.shape != flat))
    fail(ErrorCode::corrupt_file, path, ": voice ", weights::printable(voice.name), ": expected F32 ",
         published, ", found ", name_of(voice.dtype), " ", voice.shape);
}

VoicePack pack_of(const MappedFile& file, const weights::TensorLocation& voice, const std::string& where) {
  check_shape(voice, file.path());
  const Tensor values = weights::copy_dense(file.bytes(), voice);
  return {std::vector<float>(values.span<float>().begin(), values.span<float>().end()), where};
}

VoicePack read_npz_voice(const MappedFile& file, std::string_view name) {
  for (const weights::TensorLocation& voice : weights::parse_npz(file.bytes(), file.path())) {
    if (voice.name == name) return pack_of(file, voice, concat(file.path(), ": ", name));
  }
  fail(ErrorCode::not_found, file.path(), ": no voice ", weights::printable(name), " in it");
}

}  // namespace

VoicePack::VoicePack(std::vector<float> values, const std::string& where) : values_(std::move(values)) {
  CHECK(values_.size() == kFloats, "a voice of ", values_.size(), " values");
  const auto finite = [](float value) { return std::isfinite(value); };
  const auto wrong = std::ranges::find_if_not(values_, finite);
  if (wrong != values_.end())
    fail(ErrorCode::corrupt_file, where, ": value ", wrong - values_.begin(), " of the voice is ", *wrong);
}

VoicePack VoicePack::random(uint64_t seed) {
  constexpr float kSpread = 0.4f;
  std::vector<float> values(kFloats);
  for (size_t i = 0; i < kFloats; ++i) {
    const PhiloxBlock block = philox4x32(seed, {static_cast<uint32_t>(i), 0, 0, 0});
    values[i] = kSpread * (2 * uniform_open(block[0]) - 1);
  }
  return {std::move(values), "random voice"};
}

std::span<const float> VoicePack::row(int64_t code_points) const {
  if (code_points < 1 || code_points > kRows)
    fail(ErrorCode::invalid_argument, "phonemes: expected 1 to ", kRows, " characters, got ", code_points);
  return values().subspan(static_cast<size_t>((code_points - 1) * kColumns), static_cast<size_t>(kColumns));
}

VoicesFile inspect_voices(const std::string& path) {
  const MappedFile file(path);
  VoicesFile found{.format = format_of(file)};
  if (found.format == VoiceFormat::tensor) {
    check_shape(weights::parse_torch_tensor(file.bytes(), path), path);
  } else if (found.format == VoiceFormat::npz) {
    for (weights::TensorLocation& voice : weights::parse_npz(file.bytes(), path)) {
      check_shape(voice, path);
      found.names.push_back(std::move(voice.name));
    }
  }
  return found;
}

VoicePack read_voice(const std::string& path, VoiceFormat format, std::string_view name) {
  const MappedFile file(path);
  if (format_of(file) != format)
    fail(ErrorCode::corrupt_file, path, ": the file was replaced by one of another kind");
  if (format == VoiceFormat::npz) return read_npz_voice(file, name);
  if (format == VoiceFormat::tensor)
    return pack_of(file, weights::parse_torch_tensor(file.bytes(), path), path);
  std::vector<float> values(kFloats);
  std::memcpy(values.data(), file.bytes().data(), kRawBytes);
  return {std::move(values), path};
}

}  // namespace shoal::kokoro
