// A folder of Kokoro's fixtures: the model, its cases and their goldens.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numbers>
#include <numeric>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "models/kokoro/kokoro.h"
#include "models/kokoro/layout.h"
#include "ops/device_testing.h"
#include "tests/parity/goldens.h"
#include "tests/parity/tally.h"
#include "weights/checkpoint.h"
#include "weights/name_maps.h"

namespace shoal::parity {

using Values = std::vector<float>;

inline double rms(const Values& x) {
  double sum = 0;
  for (const float value : x) sum += static_cast<double>(value) * value;
  return std::sqrt(sum / static_cast<double>(std::max<size_t>(1, x.size())));
}

// Norm of the difference divided by the norm of the golden.
inline double distance(const Values& got, const Values& golden) {
  Values difference(golden.size());
  for (size_t i = 0; i < golden.size(); ++i) difference[i] = got[i] - golden[i];
  return rms(difference) / std::max(1e-30, rms(golden));
}

// The fixtures' noise (README): a hash of sample * 9 + harmonic.
inline float hash_noise(uint32_t i) {
  i ^= i >> 16, i *= 0x7feb352dU;
  i ^= i >> 15, i *= 0x846ca68bU;
  i ^= i >> 16;
  const float unit = static_cast<float>(static_cast<double>(i >> 8) * 0x1p-23 - 1);
  return unit * std::numbers::sqrt3_v<float>;
}

class KokoroCase {
 public:
  // entry: of the manifest. Throws Error where one of them lacks what every case has.
  KokoroCase(const std::string& path, const std::string& name, const Json& entry)
      : name_(name),
        goldens_(path),
        entry_(entry),
        speed_(static_cast<float>(entry.at("speed").as_number())),
        hash_(entry.at("noise").as_string() == "hash"),
        ids_(goldens_.integers("input_ids")),
        durations_(goldens_.integers("pred_dur")),
        style_(goldens_.floats("ref_s")) {}

  const std::string& name() const { return name_; }
  const Json& entry() const { return entry_; }
  bool has_hash_noise() const { return hash_; }
  bool contains(const std::string& tensor) const { return goldens_.has(tensor); }
  std::vector<std::string> names() const { return goldens_.names(); }
  const std::vector<int32_t>& ids() const { return ids_; }
  const std::vector<int32_t>& durations() const { return durations_; }
  const Values& style() const { return style_; }
  int32_t frames() const { return std::accumulate(durations_.begin(), durations_.end(), 0); }
  // As stored; integers as floats.
  Values column(const std::string& tensor) const {
    const DType dtype = goldens_.get(tensor).dtype();
    if (dtype != DType::i32 && dtype != DType::i64) return goldens_.floats(tensor);
    const std::vector<int32_t> integers = goldens_.integers(tensor);
    return {integers.begin(), integers.end()};
  }
  // Channels last, where it is stored as [1, channels, time] with that many steps of time; else as it is.
  Values rows(const std::string& tensor, int64_t steps) const {
    const TensorView view = goldens_.get(tensor);
    const Values stored = column(tensor);
    const bool square = view.rank() == 3 && view.dim(1) == steps && tensor.find("_blk") == std::string::npos;
    if (view.rank() != 3 || view.dim(2) != steps || square) return stored;
    Values turned(stored.size());
    const int64_t channels = view.dim(1);
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t t = 0; t < steps; ++t)
        turned[static_cast<size_t>(t * channels + c)] = stored[static_cast<size_t>(c * steps + t)];
    }
    return turned;
  }
  kokoro::Utterance utterance() const { return {.ids = ids_, .style = style_, .speed = speed_}; }
  // For a batch with only this case, whose first sample has index `begin` of `total`.
  Tensor noise(int64_t begin, int64_t total, int64_t samples) const {
    Tensor given = Tensor::zeros(DType::f32, {total, ops::kHarmonics});
    if (!hash_) return given;
    for (int64_t i = 0; i < samples * ops::kHarmonics; ++i)
      given.as<float>()[begin * ops::kHarmonics + i] = hash_noise(static_cast<uint32_t>(i));
    return given;
  }
  // How far the reference in f32 is from itself in double.
  double own_deviation(const std::string& tensor) const {
    return entry_.at("f32_vs_f64").at(tensor).at("rel_rms").as_number();
  }

 private:
  std::string name_;
  Goldens goldens_;
  Json entry_;
  float speed_;
  bool hash_;
  std::vector<int32_t> ids_, durations_;
  Values style_;
};

// What taps saw, without gaps.
class StageRecorder {
 public:
  void operator()(std::string_view name, TensorView x) {
    Stage& stage = stages_[std::string(name)];
    stage.steps = x.dim(0);
    stage.values.assign(x.as<float>(), x.as<float>() + x.elements());
  }
  struct Stage {
    int64_t steps = 0;
    Values values;
  };
  const Stage* find(const std::string& name) const {
    const auto found = stages_.find(name);
    return found == stages_.end() ? nullptr : &found->second;
  }

 private:
  std::map<std::string, Stage> stages_;
};

// A folder's model, its cases, and what running it needs.
class KokoroFixture {
 public:
  // For one check of the folder, named in its report. Throws Error, also where it holds no case.
  KokoroFixture(const std::string& dir, const std::string& check)
      : tally(dir, check),
        dir_(dir),
        checkpoint_(weights::Checkpoint::open(dir + "/kokoro-v1_0.pth")),
        config_(kokoro::Config::read(dir + "/config.json")) {
    weights::normalise_kokoro_names(checkpoint_);
    config_.take_widths(checkpoint_);
    const Json manifest = Json::read_file(dir + "/manifest.json", int64_t{64} << 20);
    for (const auto& [name, entry] : manifest.at("cases").as_object()) {
      const std::string path = dir + "/goldens/" + name + ".safetensors";
      // A tree may hold some of them.
      if (is_regular_file(path))
        cases_.emplace_back(path, name, entry);
      else
        tally.absent(name, "goldens of the case");
    }
    if (cases_.empty()) fail(ErrorCode::not_found, dir, "/goldens: none of the manifest's cases");
  }

  // Whether a case has what the form allows to be missing; counts it as absent else.
  bool has(const KokoroCase& example, const std::string& tensor) {
    const bool found = example.contains(tensor);
    if (!found) tally.absent(example.name(), tensor);
    return found;
  }
  const std::string& dir() const { return dir_; }
  const std::vector<KokoroCase>& cases() const { return cases_; }
  const kokoro::Config& config() const { return config_; }
  ops::Context& ctx() { return machine_.context; }
  const weights::Checkpoint& checkpoint() const { return checkpoint_; }
  // A single case, with its own noise.
  kokoro::Spoken speak(const kokoro::Kokoro& model, const KokoroCase& example,
                       const kokoro::Tap* tap = nullptr) {
    const std::array utterances = {example.utterance()};
    const int64_t per_frame = model.samples_per_frame();
    const kokoro::Layout layout({example.frames()});
    const Tensor noise = ops::resident(
        ctx(),
        example.noise(layout.begin(0) * per_frame, layout.total() * per_frame, example.frames() * per_frame));
    const ops::SourceNoise given{.given = noise};
    return std::move(model.speak(ctx(), utterances, tap, &given)[0]);
  }
  kokoro::Kokoro model() { return kokoro::Kokoro::load(checkpoint_, config_, ctx(), DType::f32); }

  Tally tally;

 private:
  std::string dir_;
  ops::TestMachine machine_{2};
  weights::Checkpoint checkpoint_;
  kokoro::Config config_;
  std::vector<KokoroCase> cases_;
};

}  // namespace shoal::parity
