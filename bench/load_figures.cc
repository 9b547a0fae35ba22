#include "bench/load_figures.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "bench/machine.h"
#include "bench/timing.h"
#include "models/dac/codec.h"
#include "models/dac/inventory.h"
#include "models/dual_ar/dual_ar.h"
#include "models/dual_ar/inventory.h"
#include "weights/checkpoint.h"
#include "weights/name_maps.h"
#include "weights/safetensors_layout.h"

namespace shoal::bench {
namespace {

// A folder that is gone at the end.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "shoal_bench_XXXXXX").string();
    if (!mkdtemp(name.data())) fail(ErrorCode::io, name, ": no temporary folder can be made there");
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

// One megabyte of values near 0.02, repeated: loading does not look at them.
std::vector<char> filler(DType dtype) {
  std::vector<char> block(1 << 20);
  for (size_t i = 0; i < block.size() / static_cast<size_t>(size_of(dtype)); ++i) {
    const float value = 0.02f * static_cast<float>(1 + i % 13) / 13 * (i % 2 ? 1.0f : -1.0f);
    if (dtype == DType::f32) {
      reinterpret_cast<float*>(block.data())[i] = value;
    } else {
      reinterpret_cast<Bf16*>(block.data())[i] = float_to_bf16(value);
    }
  }
  return block;
}

// All of one dtype.
void write_checkpoint(const std::string& path, const std::vector<weights::NamedShape>& tensors) {
  std::ofstream file(path, std::ios::binary);
  const auto layout = weights::SafetensorsLayout::of(tensors);
  file << layout.header;
  int64_t bytes = layout.file_bytes - std::ssize(layout.header);
  const std::vector<char> block = filler(tensors.front().dtype);
  for (; bytes > 0; bytes -= static_cast<int64_t>(block.size())) {
    file.write(block.data(), std::min<int64_t>(bytes, static_cast<int64_t>(block.size())));
  }
  file.close();
  if (!file)
    fail(ErrorCode::resource_exhausted, path, ": cannot be written; the disk may be full (use --no-load)");
}

std::vector<weights::NamedShape> language_model_tensors(const dual_ar::Config& config, DType dtype) {
  std::vector<weights::NamedShape> tensors;
  for (const dual_ar::RequiredTensor& tensor : dual_ar::required_tensors(config))
    tensors.push_back({tensor.name, dtype, tensor.shape});
  return tensors;
}

// Convolutions in the weight-normed form of the published file.
std::vector<weights::NamedShape> codec_tensors(const dac::Config& config, DType dtype) {
  std::vector<weights::NamedShape> tensors;
  for (const dac::RequiredTensor& tensor : dac::required_tensors(config, dac::Parts::both)) {
    if (!tensor.weight_normed) {
      tensors.push_back({tensor.name, dtype, tensor.shape});
      continue;
    }
    tensors.push_back({tensor.name + ".parametrizations.weight.original0", dtype, {tensor.shape[0], 1, 1}});
    tensors.push_back({tensor.name + ".parametrizations.weight.original1", dtype, tensor.shape});
  }
  return tensors;
}

}  // namespace

LoadFigures bench_load(const dual_ar::Config& config, DType dtype, ops::Context& ctx) {
  const TemporaryFolder folder;
  const std::string language_model_path = folder.file("model.safetensors"),
                    codec_path = folder.file("codec.safetensors");
  write_checkpoint(language_model_path, language_model_tensors(config, DType::bf16));
  write_checkpoint(codec_path, codec_tensors(dac::Config::published(), DType::f32));

  LoadFigures figures;
  for (int pass = 0; pass < 2; ++pass) {  // the first pass warms the page cache
    reset_peak_resident();
    const double start = now_s();
    weights::Checkpoint language_model_file = weights::Checkpoint::open(language_model_path);
    weights::normalise_dual_ar_names(language_model_file);
    const auto language_model = dual_ar::DualAr::load(language_model_file, config, ctx, {.formats = dtype});
    language_model_file.release_pages();
    const double between = now_s();
    weights::Checkpoint codec_file = weights::Checkpoint::open(codec_path);
    weights::normalise_codec_names(codec_file);
    const auto codec = dac::Codec::load(codec_file, dac::Config::published(), ctx, dtype, dac::Parts::both);
    codec_file.release_pages();
    figures.language_model_s = between - start;
    figures.codec_s = now_s() - between;
    figures.file_bytes = language_model_file.file_bytes() + codec_file.file_bytes();
    figures.weight_bytes = language_model.memory().total() + codec.memory().total();
  }
  figures.peak_resident_bytes = peak_resident_bytes();
  return figures;
}

}  // namespace shoal::bench
