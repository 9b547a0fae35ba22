// The residual blocks of Kokoro (MODEL.md, Blocks), each with its weights.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/kokoro/loader.h"
#include "models/kokoro/rows.h"
#include "models/kokoro/style.h"
#include "ops/packed_matrix.h"
#include "ops/snake_block.h"

namespace shoal::kokoro {

constexpr float kNormEps = 1e-5f;
constexpr float kSlope = 0.2f;  // of leaky ReLU, everywhere but in the generator

// A convolution as the checkpoint has it, [out, in, kernel] with its bias, times `factor`.
ops::PackedMatrix load_conv(Loader& loader, const std::string& prefix, const Shape& shape, bool bias,
                            float factor = 1);

// AdainResBlk1d: (conv2(lrelu(adain(conv1(pool(lrelu(adain(x))))))) + shortcut(x)) / sqrt(2). With `upsample`
// it doubles the rows.
class StyledBlock {
 public:
  struct Spec {
    std::string prefix;
    int64_t in = 0, out = 0;
    bool upsample = false;
  };
  StyledBlock(Loader& loader, StyleTable& styles, const Spec& spec);

  int64_t outputs() const { return spec_.out; }
  // rows: those of x; affines: of the table that the block was loaded with. x: f32 [rows, in]; y: f32 [rows
  // (times 2 with `upsample`), out]; rows of both may be strided; x and y do not overlap.
  void forward(const Rows& rows, TensorView affines, TensorView x, TensorView y) const;

 private:
  void shortcut(const Rows& rows, TensorView x, TensorView y) const;

  Spec spec_;
  StyleColumns norm1_, norm2_;
  ops::PackedMatrix conv1_, conv2_;              // conv2 and the projection over sqrt(2)
  std::optional<ops::PackedMatrix> projection_;  // in -> out, one tap
  Tensor pool_weight_, pool_bias_;               // f32 [3, in], [in]; with `upsample`
};

// AdaINResBlock1: three times x += conv2(snake(adain(conv1(snake(adain(x)))))).
class SnakeBlock {
 public:
  // Dilations of the first convolution in each of the three units.
  SnakeBlock(Loader& loader, StyleTable& styles, const std::string& prefix, int64_t channels, int64_t kernel,
             const std::vector<int64_t>& dilations);

  // x: f32 [rows, channels]; y: the same shape, not x; both dense. The gaps of x are not read.
  void forward(const Rows& rows, TensorView affines, TensorView x, TensorView y) const;

 private:
  struct Half {
    StyleColumns norm;
    Tensor alpha;  // f32 [1, channels, 1]
    ops::PackedMatrix conv;
    int64_t dilation = 1;
  };
  struct Unit {
    Half first, second;
  };
  static ops::SnakeUnit::Half half(const Half& half, TensorView affines);

  std::vector<Unit> units_;
};

}  // namespace shoal::kokoro
