// What the tests of products share on every machine: the dtypes of their matrices, and bounds.
#pragma once

#include "ops/matrix_testing.h"
#include "ops/op_testing.h"
#include "tensor/dtype.h"

namespace shoal::ops {

// The error bound of a sum over `terms` inputs on a GPU, in units of the sum of magnitudes. The tensor cores
// add 16 products and the sum so far after truncating all of them at the last bit of the largest: 17 times
// two units for each 16 inputs, counted in whole tiles, in every tap. Additions of segments, of taps and the
// bias come after.
inline ref::Values product_bound(const ref::Values& magnitude, int64_t terms, DType dtype, int64_t taps = 1) {
  const int64_t units =
      dtype == DType::f32 ? taps * terms + 15 + taps : taps * 34 * 2 * ((terms + 31) / 32) + 15 + taps;
  ref::Values bound;
  for (const double m : magnitude) bound.push_back(static_cast<double>(units) * kUnit * m + 1e-37);
  return bound;
}

// Half an ulp of a dtype relative to its value.
inline double unit_of(DType dtype) {
  return dtype == DType::bf16 ? 0x1p-9 : dtype == DType::f16 ? 0x1p-12 : kUnit;
}

// A machine, and what a matrix holds there.
struct ProductCase {
  OpMachine machine;
  DType dtype;
};

inline void PrintTo(const ProductCase& tested, std::ostream* out) {
  *out << tested.machine.name << '/' << name_of(tested.dtype);
}
inline std::string name_of_product(const testing::TestParamInfo<ProductCase>& info) {
  return info.param.machine.name + "_" + std::string(name_of(info.param.dtype));
}

// These machines with every dtype of a product there: f16 on a GPU alone.
inline std::vector<ProductCase> products_on(const std::vector<OpMachine>& machines) {
  std::vector<ProductCase> products;
  for (const OpMachine& machine : machines) {
    for (const DType dtype : {DType::f32, DType::bf16}) products.push_back({machine, dtype});
    if (!machine.isa) products.push_back({machine, DType::f16});
  }
  return products;
}

// One test of a product on one machine with one dtype.
class ProductTest : public testing::TestWithParam<ProductCase>, protected OpFixture {
 protected:
  void SetUp() override { open(GetParam().machine); }
  void TearDown() override { close(); }
  static bool on_gpu() { return !GetParam().machine.isa; }
  static DType dtype() { return GetParam().dtype; }

  // As the matrix and its inputs are multiplied.
  static ref::Values narrow(const std::vector<float>& values) { return wide(rounded_to(values, dtype())); }
  // What a sum over `terms` inputs of each tap may be off by on this machine.
  static ref::Values bound_of(const ref::Values& magnitude, int64_t terms, int64_t taps = 1) {
    return on_gpu() ? product_bound(magnitude, terms, dtype(), taps) : sum_bound(magnitude, terms * taps);
  }
};

}  // namespace shoal::ops
