// Weights as integers of 8 and 4 bits, chosen by what a matrix makes of the inputs that it is known to read:
// GPTQ (Frantar et al. 2023), without the inverse of the sums of products.
#pragma once

#include "ops/context.h"
#include "ops/round_weights.h"

namespace shoal::ops {

// What a matrix reads: the sums of products of every two of its inputs.
class InputStatistics {
 public:
  InputStatistics() = default;
  explicit InputStatistics(int64_t depth);

  // rows: f32 [rows, depth], in host memory. In one order the sums have the same bits on every instruction
  // set and with any number of threads.
  void add(Context& ctx, TensorView rows);

  int64_t depth() const { return products_.dim(0); }
  int64_t rows() const { return rows_; }
  // f32 [depth, depth], symmetric.
  TensorView products() const { return products_; }

 private:
  Tensor products_{DType::f32, {0, 0}};
  int64_t rows_ = 0;
};

struct CalibratedError {
  RoundingError weights;
  // Of the products with the known inputs; before: of the integers of round_weights.h.
  RoundingError outputs_before, outputs;
};

// As round_to_int8 and round_to_int4 but for the choice of the integers. Inputs are taken in their order;
// what rounding one has moved the outputs by, the next ones make good. Scales and minima of 4 bits are
// searched for when their group's turn comes, each weight as important as what its rounding costs then. An
// output that this leaves further from its products than rounding alone keeps what rounding alone gives; so
// do all if the inputs are zeros. If inputs are independent and equally large, the result is that of rounding
// alone. A damping of 1 % of the mean square is added to every input, tenfold as often as the sums are still
// singular. Takes 16 bytes of memory for each pair of inputs. Throws Error: as those; invalid_argument for
// statistics that are not finite.
CalibratedError calibrate_int8(Context& ctx, TensorView weight, const InputStatistics& inputs,
                               TensorView integers, TensorView scales);
CalibratedError calibrate_int4(Context& ctx, TensorView weight, int64_t group, const InputStatistics& inputs,
                               const NibbleMatrix& to);

}  // namespace shoal::ops
