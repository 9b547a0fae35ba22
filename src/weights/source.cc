#include "weights/source.h"

#include "tensor/formats.h"
#include "weights/convert.h"
#include "weights/quantised.h"
#include "weights/weight_norm.h"

namespace shoal::weights {
namespace {

class CheckpointSource final : public TensorSource {
 public:
  CheckpointSource(const Checkpoint& checkpoint, ThreadTeam& team) : checkpoint_(checkpoint), team_(team) {}
  bool contains(std::string_view name) const override { return checkpoint_.contains(name); }
  Weight tensor(const std::string& name, const Shape& shape) override {
    const TensorView view = checkpoint_.get(name, shape);
    release_after(view.bytes());
    return Weight(view);
  }
  Weight layer_matrix(const std::string& name, const Shape& shape) override {
    const TensorView* found = checkpoint_.find(name);
    const bool is_scaled = found && has_output_scales(found->dtype());
    if (!is_scaled && !(found && found->dtype() == DType::u8)) return tensor(name, shape);
    return weight_of(is_scaled ? find_integers(checkpoint_, name, shape, &team_, found->dtype())
                               : find_nibbles(checkpoint_, name, shape, 0));
  }
  Weight layer_convolution(const std::string& prefix, const Shape& shape, int outputs_axis) override {
    const std::string name = prefix + ".weight";
    const TensorView* found = checkpoint_.find(name);
    if (!found || found->dtype() != DType::i8) return convolution(prefix, shape);
    return weight_of(find_integers(checkpoint_, name, shape, &team_, DType::i8, outputs_axis));
  }
  Weight convolution(const std::string& prefix, const Shape& shape) override {
    Tensor folded = conv_weight(checkpoint_, prefix, shape, &team_);
    release_after(folded.bytes());
    return Weight(std::move(folded));
  }

 private:
  Weight weight_of(const StoredIntegers& stored) {
    release_after(stored.integers.bytes());
    Weight weight(stored.integers);
    weight.scales = stored.scales;
    weight.minima = stored.minima;
    return weight;
  }
  // Views outlive their release: pages that are read again come from the file again.
  void release_after(int64_t bytes) {
    constexpr int64_t kReleaseEvery = int64_t{128} << 20;
    unreleased_ += bytes;
    if (unreleased_ < kReleaseEvery) return;
    checkpoint_.release_pages();
    unreleased_ = 0;
  }

  const Checkpoint& checkpoint_;
  ThreadTeam& team_;
  int64_t unreleased_ = 0;
};

class DrawnSource final : public TensorSource {
 public:
  DrawnSource(DrawTensor draw, std::string lacks) : draw_(std::move(draw)), lacks_(std::move(lacks)) {}
  bool contains(std::string_view name) const override {
    return lacks_.empty() || name.find(lacks_) == std::string_view::npos;
  }
  Weight tensor(const std::string& name, const Shape& shape) override { return Weight(draw_(name, shape)); }
  Weight convolution(const std::string& prefix, const Shape& shape) override {
    return tensor(prefix + ".weight", shape);
  }

 private:
  const DrawTensor draw_;
  const std::string lacks_;
};

}  // namespace

Tensor to_f32(Weight weight, ThreadTeam* team) {
  if (weight.view.is_sized_only()) return Tensor::sized(DType::f32, weight.view.shape());
  if (!weight.owned.empty() && weight.owned.dtype() == DType::f32) return std::move(weight.owned);
  return to_f32(weight.view, team);
}

std::unique_ptr<TensorSource> read_weights(const Checkpoint& checkpoint, ThreadTeam& team) {
  return std::make_unique<CheckpointSource>(checkpoint, team);
}

std::unique_ptr<TensorSource> draw_weights(DrawTensor draw, std::string lacks) {
  return std::make_unique<DrawnSource>(std::move(draw), std::move(lacks));
}

Weight NamesOnly::note(RequiredTensor tensor) {
  Weight weight(Tensor::sized(DType::f32, tensor.shape));
  if (part_of_) tensor.part = part_of_(tensor.name);
  if (known_.insert(tensor.name).second) tensors_.push_back(std::move(tensor));
  return weight;
}

}  // namespace shoal::weights
