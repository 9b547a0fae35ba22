// For tests: files of voices, as the published tools write them.
#pragma once

#include <string>
#include <vector>

#include "models/kokoro/voice_pack.h"
#include "weights/archives_testing.h"

namespace shoal::kokoro {

// NAME.bin
inline std::string raw_voice(const VoicePack& pack) {
  return weights::array_bytes(std::vector<float>(pack.values().begin(), pack.values().end()));
}

// NAME.pt; `rows` of them are stored, of which 510 from `first` on are the voice.
inline std::string tensor_voice(const VoicePack& pack, int64_t rows = VoicePack::kRows, int64_t first = 0) {
  const int64_t columns = VoicePack::kColumns;
  const auto before = static_cast<size_t>(first * columns), all = static_cast<size_t>(rows * columns);
  std::vector<float> storage(all, -99.0f);
  std::copy(pack.values().begin(), pack.values().end(), storage.begin() + static_cast<ptrdiff_t>(before));
  const std::string tensor = weights::pickle_tensor({.storage_elements = rows * columns,
                                                     .offset = first * columns,
                                                     .shape = {VoicePack::kRows, 1, columns},
                                                     .strides = {columns, columns, 1}});
  return weights::zip_file(
      {{"v/data.pkl", weights::pickle_file(tensor)}, {"v/data/0", weights::array_bytes(storage)}});
}

// voices-v1.0.bin
inline std::string npz_voices(const std::vector<std::pair<std::string, VoicePack>>& voices) {
  std::vector<weights::ZipPart> parts;
  for (const auto& [name, pack] : voices) {
    const std::vector<float> values(pack.values().begin(), pack.values().end());
    parts.push_back({name + ".npy", weights::npy_floats("(510, 1, 256)", values)});
  }
  return weights::zip_file(parts);
}

inline std::vector<float> values_of(const VoicePack& pack) {
  return {pack.values().begin(), pack.values().end()};
}

}  // namespace shoal::kokoro
