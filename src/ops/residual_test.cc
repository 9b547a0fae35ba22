#include "ops/residual.h"

#include "ops/op_testing.h"
#include "ops/vector_testing.h"

namespace shoal::ops {
namespace {

class ResidualRows : public OpTest {
 protected:
  std::vector<DType> weight_types() const {
    std::vector<DType> types = narrow_types();
    types.push_back(DType::f32);
    return types;
  }
  PackedMatrix matrix(int64_t outputs, int64_t depth, unsigned seed, DType dtype) {
    const std::vector<float> w = random_values(outputs * depth, seed);
    return pack_matrix(ctx(), TensorView::of(w.data(), DType::f32, {outputs, depth}), {}, dtype);
  }

  // Twice, so that what waits is added first.
  void expect_as_at_once(int64_t rows, int64_t dim, int64_t depth, DType dtype) {
    SCOPED_TRACE(testing::Message() << rows << " rows of " << dim << ' ' << name_of(dtype));
    const Workspace::Scope scope(*ctx().workspace);
    const PackedMatrix out = matrix(dim, depth, 1, dtype), head = matrix(24, dim, 2, dtype);
    const Tensor in = put(random_values(rows * depth, 3), {rows, depth}, product_input(ctx(), out));
    const Tensor x = put(random_values(rows * dim, 4), {rows, dim}),
                 at_once = put(random_values(rows * dim, 4), {rows, dim});
    const Tensor y = garbage({rows, 24}), want = garbage({rows, 24}),
                 norm_weight = put(random_values(dim, 5), {dim});
    const RmsNorm norm{norm_weight, 1e-6f};

    Residual stream(ctx(), x, dtype);
    add_linear(ctx(), in, out, stream);
    norm_linear(ctx(), stream, norm, head, y);
    linear(ctx(), in, out, at_once, {.accumulate = true});
    norm_linear(ctx(), at_once, norm, head, want);
    expect_same_bits(get(y), get(want));
    expect_same_bits(get(x), get(at_once));

    for (int i = 0; i < 2; ++i) add_linear(ctx(), in, out, stream);
    EXPECT_EQ(settled(ctx(), stream).data(), x.view().data());
    for (int i = 0; i < 2; ++i) linear(ctx(), in, out, at_once, {.accumulate = true});
    expect_same_bits(get(x), get(at_once));
  }
};

TEST_P(ResidualRows, HaveTheBitsOfAddingAtOnce) {
  for (const DType dtype : weight_types()) {
    expect_as_at_once(20, 48, 64, dtype);
    expect_as_at_once(17, 512, 512, dtype);  // sums that wait on a GPU
  }
}

TEST_P(ResidualRows, StreamsMustBeContiguousFloats) {
  const Tensor x = garbage({3, 20});
  EXPECT_THROW(Residual(ctx(), x.view().columns(0, 10), DType::f32), Error);
  EXPECT_THROW(Residual(ctx(), x.view().reshape({60}), DType::f32), Error);
}

INSTANTIATE_TEST_SUITE_P(Machine, ResidualRows, testing::ValuesIn(every_product_machine()), name_of_machine);

}  // namespace
}  // namespace shoal::ops
