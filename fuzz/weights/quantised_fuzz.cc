// Any quantization_config, and a checkpoint of any scales and integers beside it: what is accepted can be
// used, all else throws shoal::Error.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <unistd.h>

#include "base/bf16.h"
#include "base/e4m3.h"
#include "base/error.h"
#include "weights/quantised.h"
#include "weights/safetensors_layout.h"
#include "weights/source.h"

namespace {

using namespace shoal;
using namespace shoal::weights;

// Takes bytes off the end; zeros when there are no more.
uint8_t take(std::span<const uint8_t>& data) {
  if (data.empty()) return 0;
  const uint8_t last = data.back();
  data = data.first(data.size() - 1);
  return last;
}

Checkpoint make_checkpoint(std::span<const uint8_t>& data) {
  constexpr std::array<const char*, 7> kNames = {"a.weight", "a.scales", "a.minima", "b.weight",
                                                 "b.scales", "b.minima", "norm"};
  constexpr std::array kTypes = {DType::i8, DType::f32, DType::bf16, DType::u8, DType::f8};
  std::vector<NamedShape> tensors;
  for (const char* name : kNames) {
    const uint8_t form = take(data);
    if (form % 8 == 7) continue;
    const int64_t rows = 1 + form / 8 % 4, depth = 1 + form / 32;
    tensors.push_back({name, kTypes[form % 5], form & 4 ? Shape{rows} : Shape{rows, depth}});
  }
  const SafetensorsLayout layout = SafetensorsLayout::of(tensors);
  std::string file = layout.header;
  while (std::ssize(file) < layout.file_bytes) file += static_cast<char>(take(data));
  static const std::string path = concat("/tmp/shoal-fuzz-", getpid(), ".safetensors");
  std::ofstream(path, std::ios::binary) << file;
  Checkpoint checkpoint = Checkpoint::open(path);
  unlink(path.c_str());  // the next one is another file, while this one is read
  return checkpoint;
}

void demand(bool condition) {
  if (!condition) std::abort();
}

// dtype: i8 or f8.
void demand_scaled(const Weight& weight, const Shape& shape, DType dtype) {
  demand(weight.view.dtype() == dtype && weight.view.shape() == shape);
  const auto* const bytes = static_cast<const uint8_t*>(weight.view.data());
  for (int64_t i = 0; i < weight.view.elements(); ++i)
    demand(dtype == DType::f8 ? !is_nan_of_e4m3(bytes[i]) : bytes[i] != 0x80);
  for (int64_t row = 0; row < shape[0]; ++row) {
    const float scale = weight.scales.as<float>()[row];
    demand(scale >= 0 && std::isfinite(scale));
  }
}

void demand_nibbles(const Weight& weight, const Shape& shape) {
  demand(weight.view.dtype() == DType::u8 && weight.view.shape() == Shape({shape[0], shape[1] / 2}));
  demand(weight.scales.shape() == Shape({shape[0], 1}) && weight.minima.shape() == weight.scales.shape());
  for (int64_t row = 0; row < shape[0]; ++row) {
    const float scale = bf16_to_float(weight.scales.as<Bf16>()[row]);
    demand(scale >= 0 && std::isfinite(scale) && std::isfinite(bf16_to_float(weight.minima.as<Bf16>()[row])));
  }
}

void use(const Checkpoint& checkpoint, const std::vector<RequiredTensor>& matrices,
         const Quantisation& quantisation) try {
  check_quantised(checkpoint, quantisation, matrices);
  static ThreadTeam team(1);
  const auto source = read_weights(checkpoint, team);
  for (const RequiredTensor& matrix : matrices) {
    const Weight weight = source->layer_matrix(matrix.name, matrix.shape);
    if (quantisation.weights == DType::u4)
      demand_nibbles(weight, matrix.shape);
    else
      demand_scaled(weight, matrix.shape, *quantisation.weights);
  }
} catch (const Error&) {
}

// The same names as a codec's: a kernel, and a transposed one.
void use_codec(const Checkpoint& checkpoint) try {
  const std::vector<RequiredTensor> kernels = {
      {.name = "a", .shape = {2, 3}, .weight_normed = true, .outputs_axis = 1},
      {.name = "b", .shape = {1, 1}, .weight_normed = true, .outputs_axis = 0},
      {.name = "norm", .shape = {1}}};
  check_quantised_codec(checkpoint, true, kernels);
  static ThreadTeam team(1);
  const auto source = read_weights(checkpoint, team);
  const Weight weight = source->layer_convolution("a", {2, 3}, 1);
  demand(weight.scales.shape() == Shape({3}));
  for (int64_t n = 0; n < 3; ++n) demand(std::isfinite(weight.scales.as<float>()[n]));
  demand_scaled(source->layer_convolution("b", {1, 1}, 0), {1, 1}, DType::i8);
} catch (const Error&) {
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  std::span<const uint8_t> data(bytes, size);
  try {
    const Checkpoint checkpoint = make_checkpoint(data);
    for (const DType dtype : {DType::i8, DType::f8})
      use(checkpoint, {{"a.weight", {2, 3}, ""}, {"b.weight", {1, 1}, ""}}, {DType::bf16, dtype});
    use_codec(checkpoint);
    use(checkpoint, {{"a.weight", {2, 6}, ""}, {"b.weight", {1, 2}, ""}}, {DType::bf16, DType::u4, 64});
  } catch (const Error&) {
  }
  try {
    const std::string_view text(reinterpret_cast<const char*>(data.data()), data.size());
    const auto read = Quantisation::parse(Json::parse(text, "fuzz"));
    Quantisation::parse(Json::parse(read.value_or(Quantisation()).added_to(text), "fuzz"));
  } catch (const Error&) {
  }
  return 0;
}
