// A model folder whose layers or codec are kept in fewer bits, made of one whose are not.
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
#include "runtime/families/language/codec_quantisation.h"
#include "runtime/families/language/language_family.h"
#include "runtime/families/language/quantisation_file.h"
#include "runtime/families/language/speech_model.h"
#include "runtime/voices/new_file.h"
#include "weights/name_maps.h"
#include "weights/safetensors_layout.h"

namespace shoal::runtime {
namespace {

namespace fs = std::filesystem;

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
                                    QuantisingProgress& progress) const {
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
    if (has_output_scales(*to_.weights)) {
      shapes_.push_back({name, *to_.weights, shape});
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

// config.json, and the checkpoints that are written anew: every form of them.
std::set<std::string> replaced_files(const weights::Checkpoint* language_model,
                                     const weights::Checkpoint* codec) {
  std::set<std::string> replaced = {"config.json"};
  if (language_model) replaced.insert({"model.safetensors.index.json", "model.safetensors", "model.pth"});
  if (codec) replaced.insert({"codec.safetensors", "codec.pth"});
  for (const weights::Checkpoint* checkpoint : {language_model, codec})
    if (checkpoint)
      for (const std::string& path : checkpoint->files()) replaced.insert(std::string(file_name(path)));
  return replaced;
}

// Relative to the model's folder: its files and those of its voices, without hidden ones and those of `left`.
std::vector<fs::path> other_files(const fs::path& dir, const std::set<std::string>& left) {
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

void copy_file(const std::string& from, const fs::path& to, QuantisingProgress& progress) {
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

// The checkpoints of a model folder, and what becomes of them.
struct Quantising {
  Quantising(const weights::ModelFiles& files, const QuantiseOptions& options);
  int64_t bytes_to_read() const;

  weights::Checkpoint language_model;
  std::optional<weights::Checkpoint> codec;  // if it is to become smaller
  weights::Quantisation description;
  std::optional<QuantisedWeights> weights;
  std::optional<QuantisedCodec> narrow_codec;
};

Quantising::Quantising(const weights::ModelFiles& files, const QuantiseOptions& options)
    : language_model(weights::Checkpoint::open(files.weights)) {
  weights::normalise_dual_ar_names(language_model);
  description.precision = choose_formats(Precision::automatic, language_model).operands;
  if (options.weights == WeightFormat::automatic) description.weights.reset();
  if (options.weights == WeightFormat::fp8) description.weights = DType::f8;
  if (options.weights == WeightFormat::int4)
    description.weights = DType::u4, description.group = options.group > 0 ? options.group : kUsualGroup;
  description.codec = options.codec == CodecWeights::int8;
  if (description.weights) weights.emplace(language_model, dual_ar::Config::read(files.config), description);
  if (!description.codec) return;
  codec.emplace(weights::Checkpoint::open(files.codec));
  weights::normalise_codec_names(*codec);
  narrow_codec.emplace(*codec, read_codec_config(files));
}

int64_t Quantising::bytes_to_read() const {
  int64_t bytes = narrow_codec ? narrow_codec->bytes_to_read() : 0;
  if (weights)
    for (const weights::StoredTensor& tensor : language_model.tensors()) bytes += tensor.view.bytes();
  return bytes;
}

void check_is_original(const weights::ModelFiles& files) {
  const auto stored = weights::Quantisation::read(files.config);
  if (!stored) return;
  fail(ErrorCode::invalid_argument, "model ", printable(files.dir), ": its ",
       stored->weights ? concat("weights are ", name_of_weights(*stored->weights)) : "codec is int8",
       " already; quantise the model that it was made of");
}

QuantisationReport write_model(const weights::ModelFiles& files, const QuantiseOptions& options,
                               const QuantiseProgress& tell) {
  check_is_original(files);
  const Quantising made(files, options);
  const std::string config = made.description.added_to(read_file(files.config, kMaxConfigBytes));
  const std::vector<std::string> sentences = options.calibration.empty()
                                                 ? std::vector<std::string>()
                                                 : read_calibration_sentences(options.calibration);

  const fs::path dir = files.dir, place = free_place(options.output_dir);
  const std::vector<fs::path> others = other_files(
      dir,
      replaced_files(made.weights ? &made.language_model : nullptr, made.codec ? &*made.codec : nullptr));
  QuantisingProgress progress{tell, made.bytes_to_read()};
  for (const fs::path& name : others) progress.total += static_cast<int64_t>(fs::file_size(dir / name));

  const int64_t spoken_bytes =
      sentences.empty() ? 0 : made.language_model.file_bytes();  // counted as if read
  progress.total += spoken_bytes;
  NewFolder folder(place.parent_path().string());
  ThreadTeam team(options.threads);
  QuantisationReport report;
  std::optional<Calibration> calibration;
  if (!sentences.empty()) {
    progress.add(0, "calibration");
    calibration.emplace(files, made.language_model, sentences, team, [&](double share) {
      progress.add(static_cast<int64_t>(share * static_cast<double>(spoken_bytes)) - progress.done,
                   "calibration");
    });
  }
  if (made.weights) {
    report.bytes_before = made.language_model.file_bytes(), report.bytes_after = made.weights->file_bytes();
    report.layers = made.weights->write(folder.path() + "/model.safetensors", team,
                                        calibration ? &*calibration : nullptr, progress);
  }
  calibration.reset();
  if (made.narrow_codec) {
    report.codec_bytes_before = made.codec->file_bytes();
    report.codec_bytes_after = made.narrow_codec->file_bytes();
    report.codec_parts = made.narrow_codec->write(folder.path() + "/codec.safetensors", team, progress);
  }
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
