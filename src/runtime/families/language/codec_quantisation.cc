#include "runtime/families/language/codec_quantisation.h"

#include <map>

#include "models/dac/inventory.h"
#include "ops/round_weights.h"
#include "weights/quantised.h"
#include "weights/weight_norm.h"

namespace shoal::runtime {
namespace {

std::string matrix_name(const weights::RequiredTensor& tensor) {
  return tensor.weight_normed ? tensor.name + ".weight" : tensor.name;
}

// The tensor in 8 bits, into integers and scales.
ops::RoundingError round(const weights::Checkpoint& from, const weights::RequiredTensor& tensor,
                         ThreadTeam& team, TensorView integers, TensorView scales) {
  if (!tensor.weight_normed)
    return ops::round_to_int8(team, from.get(tensor.name, tensor.shape), integers, scales);
  const Tensor folded = weights::conv_weight(from, tensor.name, tensor.shape, &team);
  return ops::round_kernel_to_int8(team, folded, *tensor.outputs_axis, integers, scales);
}

}  // namespace

QuantisedCodec::QuantisedCodec(const weights::Checkpoint& from, const dac::Config& config) : from_(from) {
  const auto required = dac::required_tensors(config, dac::Parts::both);
  weights::check_quantised_codec(from, false, required);
  std::vector<weights::NamedShape> kept;
  for (const weights::RequiredTensor& tensor : required) {
    const auto found = tensor.stored_in(from);
    if (!found.problem.empty()) fail(ErrorCode::corrupt_file, from.path(), ": tensor ", found.problem);
    int64_t bytes = 0;
    for (const std::string& name : found.names) {
      const TensorView view = *from.find(name);
      bytes += view.bytes();
      if (!tensor.outputs_axis) kept.push_back({name, view.dtype(), view.shape()});
    }
    bytes_to_read_ += bytes;
    if (tensor.outputs_axis) add_rounded(tensor, bytes);
  }
  kept_from_ = shapes_.size();
  shapes_.insert(shapes_.end(), kept.begin(), kept.end());
  layout_ = weights::SafetensorsLayout::of(shapes_);
}

void QuantisedCodec::add_rounded(const weights::RequiredTensor& tensor, int64_t bytes) {
  rounded_.push_back({tensor, bytes, shapes_.size()});
  const std::string name = matrix_name(tensor);
  shapes_.push_back({name, DType::i8, tensor.shape});
  shapes_.push_back({weights::scales_name(name), DType::f32, {tensor.shape[*tensor.outputs_axis]}});
}

std::vector<QuantisedLayer> QuantisedCodec::write(const std::string& path, ThreadTeam& team,
                                                  QuantisingProgress& progress) const {
  Output file(path, NewFile::kept);
  file.reserve(layout_.file_bytes);
  file.write(0, std::as_bytes(std::span(layout_.header)));
  std::map<std::string, ops::RoundingError> parts;
  for (const Rounded& each : rounded_) {
    const Tensor integers(DType::i8, each.tensor.shape), scales(DType::f32, shapes_[each.at + 1].shape);
    try {
      parts[each.tensor.part].add(round(from_, each.tensor, team, integers, scales));
    } catch (const Error& error) {
      fail(error.code(), "tensor ", matrix_name(each.tensor), ": ", error.message());
    }
    file.write(layout_.offsets[each.at], bytes_of(integers));
    file.write(layout_.offsets[each.at + 1], bytes_of(scales));
    from_.release_pages();
    progress.add(each.bytes, each.tensor.part);
  }
  for (size_t i = kept_from_; i < shapes_.size(); ++i)
    copy_bytes(from_, bytes_of(*from_.find(shapes_[i].name)), file, layout_.offsets[i], shapes_[i].name,
               progress);
  file.keep();
  std::vector<QuantisedLayer> report;
  for (const auto& [part, error] : parts) report.push_back({part, error.share(), error.worst});
  return report;
}

}  // namespace shoal::runtime
