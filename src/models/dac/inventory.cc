#include "models/dac/inventory.h"

#include <algorithm>
#include <string>

#include "models/dac/decoder.h"
#include "models/dac/encoder.h"
#include "models/dac/loader.h"

namespace shoal::dac {
namespace {

std::string part_of(const std::string& name) {
  if (name.starts_with("encoder.")) return "codec encoder";
  return name.starts_with("decoder.") ? "codec decoder" : "codec quantiser";
}

// Answers as another source does and writes down what was asked.
class Recorder final : public WeightSource {
 public:
  explicit Recorder(WeightSource& source) : source_(source) {}
  Weight tensor(const std::string& name, const Shape& shape) override {
    note({name, shape, part_of(name)});
    return source_.tensor(name, shape);
  }
  Weight convolution(const std::string& prefix, const Shape& shape) override {
    note({prefix, shape, part_of(prefix), /*weight_normed=*/true});
    return source_.convolution(prefix, shape);
  }

  std::vector<RequiredTensor> tensors;

 private:
  // Encoder and decoder both read the codebooks.
  void note(RequiredTensor tensor) {
    const auto same = [&](const RequiredTensor& other) { return other.name == tensor.name; };
    if (std::none_of(tensors.begin(), tensors.end(), same)) tensors.push_back(std::move(tensor));
  }

  WeightSource& source_;
};

}  // namespace

std::vector<RequiredTensor> required_tensors(const Config& config, Parts parts) {
  ThreadTeam team;
  Workspace workspace;
  ops::Context ctx{.device = {}, .team = &team, .workspace = &workspace, .stream = nullptr};
  const std::unique_ptr<WeightSource> random = random_weights(/*seed=*/1, team);
  Recorder recorder(*random);
  if (parts != Parts::encode) Decoder(recorder, ctx, config, DType::bf16);
  if (parts != Parts::decode) Encoder(recorder, ctx, config, DType::bf16);
  return std::move(recorder.tensors);
}

}  // namespace shoal::dac
