// A model folder whose layers are kept in 8 or 4 bits, made of one whose are not.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <set>
#include <sys/stat.h>

#include "base/error.h"
#include "base/file.h"
#include "base/printable.h"
#include "base/thread_team.h"
#include "models/dual_ar/inventory.h"
#include "ops/calibrated_weights.h"
#include "ops/round_weights.h"
#include "runtime/engine/model_precision.h"
#include "runtime/families/language/calibration.h"
#include "runtime/families/language/language_family.h"
#include "runtime/families/language/speech_model.h"
#include "runtime/voices/new_file.h"
#include "weights/name_maps.h"
#include "weights/safetensors_layout.h"

namespace shoal::runtime {
namespace {

namespace fs = std::filesystem;

struct Progress {
  const QuantiseProgress& tell;
  int64_t total, done = 0;  // bytes read

  void add(int64_t bytes, const std::string& at) {
    done += bytes;
    if (tell && !tell(static_cast<double>(done) / static_cast<double>(total), at))
      fail(ErrorCode::cancelled, "quantise: interrupted");
  }
};

std::span<const std::byte> bytes_of(TensorView view) {
  return {static_cast<const std::byte*>(view.data()), static_cast<size_t>(view.bytes())};
}

// In pieces, each of which is given back to `from` (release_pages) when it is written.
template <typename Source>
void copy_bytes(const Source& from, std::span<const std::byte> bytes, Output& file, int64_t offset,
                const std::string& name, Progress& progress) {
  constexpr size_t kPieceBytes = size_t{32} << 20;
  while (!bytes.empty()) {
    const auto piece = bytes.first(std::min(bytes.size(), kPieceBytes));
    file.write(offset, piece);
    from.release_pages();
    bytes = bytes.subspan(piece.size());
    offset += std::ssize(piece);
    progress.add(std::ssize(piece), name);
  }
}

class QuantisedWeights {
 public:
  QuantisedWeights(const weights::Checkpoint& from, const dual_ar::Config& config,
                   const weights::Quantisation& to)
      : from_(from), to_(to) {
    for (const weights::RequiredTensor& required : dual_ar::layer_matrices(config)) {
      const auto found = required.stored_in(from);
      if (!found.problem.empty()) fail(ErrorCode::corrupt_file, from.path(), ": tensor ", found.problem);
      for (const std::string& name : found.names) add_matrix(name, from.find(name)->shape());
    }
    kept_from_ = shapes_.size();
    std::set<std::string> made;
    for (const weights::NamedShape& tensor : shapes_) made.insert(tensor.name);
    for (const weights::StoredTensor& tensor : from.tensors())
      if (!made.contains(tensor.name))
        shapes_.push_back({tensor.name, tensor.view.dtype(), tensor.view.shape()});
    layout_ = weights::SafetensorsLayout::of(shapes_);
  }

  int64_t file_bytes() const { return layout_.file_bytes; }

  // calibration: null for none.
  std::vector<QuantisedLayer> write(const std::string& path, ThreadTeam& team, Calibration* calibration,
                                    Progress& progress) const {
    Output file(path, NewFile::kept);
    file.reserve(layout_.file_bytes);
    file.write(0, std::as_bytes(std::span(layout_.header)));
    std::vector<QuantisedLayer> layers;
    ops::CalibratedError of_layer;
    for (size_t i = 0; i < kept_from_; i += parts()) {
      const std::string& name = shapes_[i].name;
      const std::string layer = name.substr(0, name.find('.', name.find('.') + 1));
      if (layers.empty() || layers.back().name != layer) layers.push_back({layer}), of_layer = {};
      const ops::CalibratedError of_matrix = write_matrix(i, file, team, calibration);
      of_layer.weights.add(of_matrix.weights);
      of_layer.outputs_before.add(of_matrix.outputs_before);
      of_layer.outputs.add(of_matrix.outputs);
      layers.back() = {layer, of_layer.weights.share(), of_layer.weights.worst,
                       of_layer.outputs_before.share(), of_layer.outputs.share()};
      progress.add(from_.find(name)->bytes(), layer);
    }
    for (size_t i = kept_from_; i < shapes_.size(); ++i)
      copy_bytes(from_, bytes_of(*from_.find(shapes_[i].name)), file, layout_.offsets[i], shapes_[i].name,
                 progress);
    file.keep();
    return layers;
  }

 private:
  // Tensors that a matrix becomes.
  size_t parts() const { return to_.weights == DType::u4 ? 3 : 2; }

  void add_matrix(const std::string& name, const Shape& shape) {
    if (has_output_scales(to_.weights)) {
      shapes_.push_back({name, to_.weights, shape});
      shapes_.push_back({weights::scales_name(name), DType::f32, {shape[0]}});
      return;
    }
    if (shape[1] % 2 != 0)
      fail(ErrorCode::unsupported, "tensor ", name, " has ", shape[1],
           " inputs; 4 bits need an even number of them");
    const Shape groups{shape[0], (shape[1] + to_.group - 1) / to_.group};
    shapes_.push_back({name, DType::u8, {shape[0], shape[1] / 2}});
    shapes_.push_back({weights::scales_name(name), DType::bf16, groups});
    shapes_.push_back({weights::minima_name(name), DType::bf16, groups});
  }

  ops::CalibratedError round(TensorView weight, const std::string& name, std::span<const Tensor> to,
                             ThreadTeam& team, Calibration* calibration) const {
    const bool nibbles = to_.weights == DType::u4;
    if (calibration) {
      const ops::InputStatistics& inputs = calibration->inputs_of(name);
      ops::Context& ctx = calibration->context();
      return nibbles ? ops::calibrate_int4(ctx, weight, to_.group, inputs, {to[0], to[1], to[2]})
                     : ops::calibrate_int8(ctx, weight, inputs, to[0], to[1]);
    }
    if (to_.weights == DType::f8) return {.weights = ops::round_to_fp8(team, weight, to[0], to[1])};
    return {.weights = nibbles ? ops::round_to_int4(team, weight, to_.group, {to[0], to[1], to[2]})
                               : ops::round_to_int8(team, weight, to[0], to[1])};
  }

  ops::CalibratedError write_matrix(size_t i, Output& file, ThreadTeam& team,
                                    Calibration* calibration) const {
    const std::string& name = shapes_[i].name;
    std::vector<Tensor> made;
    for (size_t part = 0; part < parts(); ++part)
      made.emplace_back(shapes_[i + part].dtype, shapes_[i + part].shape);
    try {
      const ops::CalibratedError error = round(*from_.find(name), name, made, team, calibration);
      for (size_t part = 0; part < parts(); ++part)
        file.write(layout_.offsets[i + part], bytes_of(made[part]));
      from_.release_pages();
      return error;
    } catch (const Error& error) {
      fail(error.code(), "tensor ", name, ": ", error.message());
    }
  }

  const weights::Checkpoint& from_;
  const weights::Quantisation to_;
  std::vector<weights::NamedShape>
      shapes_;  // matrices, each before its scales (and minima); then what is kept
  size_t kept_from_ = 0;
  weights::SafetensorsLayout layout_;
};

// Relative to the model's folder: its files and those of its voices, without hidden ones, checkpoints of the
// language model and config.json.
std::vector<fs::path> other_files(const fs::path& dir, const weights::Checkpoint& checkpoint) {
  std::set<std::string> left = {"config.json", "model.safetensors.index.json", "model.safetensors",
                                "model.pth"};
  for (const std::string& path : checkpoint.files()) left.insert(std::string(file_name(path)));
  std::vector<fs::path> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(dir)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_regular_file() && !name.starts_with('.') && !left.contains(name)) found.push_back(name);
  }
  if (fs::is_directory(dir / "voices"))
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(dir / "voices"))
      if (entry.is_regular_file()) found.push_back(entry.path().lexically_relative(dir));
  return found;
}

void copy_file(const std::string& from, const fs::path& to, Progress& progress) {
  fs::create_directories(to.parent_path());
  const MappedFile source(from);
  Output file(to.string(), NewFile::kept);
  file.reserve(std::ssize(source.bytes()));
  copy_bytes(source, source.bytes(), file, 0, to.filename().string(), progress);
  file.keep();
}

// The absolute path of a folder that does not exist or is empty.
fs::path free_place(const std::string& dir) {
  fs::path place = fs::absolute(dir).lexically_normal();
  if (!place.has_filename()) place = place.parent_path();
  std::error_code error;
  if (fs::is_directory(place, error) ? !fs::is_empty(place, error) : fs::exists(place, error))
    fail(ErrorCode::already_exists, "output ", printable(dir), ": expected a free name or an empty folder");
  // The finished folder is renamed to it, which cannot be done there; said before the work.
  const fs::path parent = place.parent_path();
  if (!fs::is_directory(parent))
    fail(ErrorCode::not_found, "output ", printable(dir), ": there is no folder ",
         printable(parent.string()));
  struct stat own{}, above{};
  if (lstat(place.c_str(), &own) == 0 && stat(parent.c_str(), &above) == 0 &&
      (S_ISLNK(own.st_mode) || own.st_dev != above.st_dev))
    fail(ErrorCode::invalid_argument, "output ", printable(dir),
         ": is a link or a mount; expected a new folder, as in ", printable((place / "model").string()));
  return place;
}

QuantisationReport write_model(const weights::ModelFiles& files, const QuantiseOptions& options,
                               const QuantiseProgress& tell) {
  if (const auto stored = weights::Quantisation::read(files.config))
    fail(ErrorCode::invalid_argument, "model ", printable(files.dir), ": its weights are ",
         name_of_weights(stored->weights), " already; quantise the model that it was made of");
  weights::Checkpoint checkpoint = weights::Checkpoint::open(files.weights);
  weights::normalise_dual_ar_names(checkpoint);
  weights::Quantisation description{choose_formats(Precision::automatic, checkpoint).operands};
  if (options.weights == WeightFormat::fp8) description.weights = DType::f8;
  if (options.weights == WeightFormat::int4)
    description.weights = DType::u4, description.group = options.group > 0 ? options.group : kUsualGroup;
  const QuantisedWeights quantised(checkpoint, dual_ar::Config::read(files.config), description);
  const std::string config = description.added_to(read_file(files.config, kMaxConfigBytes));

  const std::vector<std::string> sentences = options.calibration.empty()
                                                 ? std::vector<std::string>()
                                                 : read_calibration_sentences(options.calibration);

  const fs::path dir = files.dir, place = free_place(options.output_dir);
  const std::vector<fs::path> others = other_files(dir, checkpoint);
  Progress progress{tell, 0};
  for (const weights::StoredTensor& tensor : checkpoint.tensors()) progress.total += tensor.view.bytes();
  for (const fs::path& name : others) progress.total += static_cast<int64_t>(fs::file_size(dir / name));

  const int64_t spoken_bytes = sentences.empty() ? 0 : checkpoint.file_bytes();  // counted as if read
  progress.total += spoken_bytes;
  NewFolder folder(place.parent_path().string());
  ThreadTeam team(options.threads);
  QuantisationReport report{checkpoint.file_bytes(), quantised.file_bytes()};
  std::optional<Calibration> calibration;
  if (!sentences.empty()) {
    progress.add(0, "calibration");
    calibration.emplace(files, checkpoint, sentences, team, [&](double share) {
      progress.add(static_cast<int64_t>(share * static_cast<double>(spoken_bytes)) - progress.done,
                   "calibration");
    });
  }
  report.layers = quantised.write(folder.path() + "/model.safetensors", team,
                                  calibration ? &*calibration : nullptr, progress);
  calibration.reset();
  for (const fs::path& name : others) copy_file((dir / name).string(), folder.path() / name, progress);
  write_new_file(folder.path() + "/config.json", std::as_bytes(std::span(config)), NewFile::kept);
  sync_folder(folder.path());
  if (std::rename(folder.path().c_str(), place.c_str()) != 0)
    fail_with_errno(place.string(), "cannot be created");
  folder.keep();
  sync_folder(place.parent_path().string());
  return report;
}

}  // namespace

QuantisationReport LanguageFamily::quantise(const QuantiseOptions& options,
                                            const QuantiseProgress& progress) const try {
  const auto start = std::chrono::steady_clock::now();
  const std::string dir = options.model.empty() ? built_in_voice_dir() : options.model;
  QuantisationReport report = write_model(weights::find_model_files(dir), options, progress);
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
} catch (const fs::filesystem_error& error) {
  fail(ErrorCode::io, "quantise: ", error.what());
}

}  // namespace shoal::runtime
