#include <utility>

#include "ops/attention.h"
#include "ops/op_testing.h"

namespace shoal::ops {
namespace {

using PageBytes = std::vector<uint8_t>;

// Bytes that tell places apart, so that the oracle is the plain index arithmetic of [pages, heads, slots,
// dim].
PageBytes page_bytes(Shape shape, DType dtype, size_t period) {
  PageBytes bytes(static_cast<size_t>(shape.elements() * size_of(dtype)));
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i % period);
  return bytes;
}

PageBytes after_copies(PageBytes bytes, int64_t pages, const std::vector<int32_t>& from,
                       const std::vector<int32_t>& to) {
  const PageBytes before = bytes;
  const int64_t page = static_cast<int64_t>(bytes.size()) / pages;
  for (size_t i = 0; i < from.size(); ++i)
    std::copy_n(before.begin() + from[i] * page, page, bytes.begin() + to[i] * page);
  return bytes;
}

class CopyKvPages : public OpTest {
 protected:
  Tensor place(const PageBytes& bytes, Shape shape, DType dtype) {
    Tensor placed(dtype, shape, ctx().device);
    const Shape all{static_cast<int64_t>(bytes.size())};
    copy(TensorView::of(bytes.data(), DType::u8, all),
         TensorView(placed.view().data(), DType::u8, all, ctx().device));
    return placed;
  }

  void copy_layer(const KvLayer& layer, const std::vector<int32_t>& from, const std::vector<int32_t>& to) {
    copy_kv_pages(ctx(), {&layer, 1}, from, to);
  }

  void expect_copied(Shape shape, DType dtype, const std::vector<int32_t>& from,
                     const std::vector<int32_t>& to) {
    SCOPED_TRACE(testing::Message() << shape << ' ' << name_of(dtype));
    const PageBytes k = page_bytes(shape, dtype, 251), v = page_bytes(shape, dtype, 241);
    const Tensor keys = place(k, shape, dtype), values = place(v, shape, dtype);
    copy_layer({keys, values}, from, to);
    EXPECT_EQ(get_bytes(keys), after_copies(k, shape[0], from, to));
    EXPECT_EQ(get_bytes(values), after_copies(v, shape[0], from, to));
  }
};

TEST_P(CopyKvPages, MovesWholePagesAndNothingElse) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::u8}) {
    for (const Shape& shape : {Shape{9, 1, 1, 1}, Shape{9, 3, 5, 7}, Shape{9, 2, 16, 81}})
      for (const auto& [from, to] : std::vector<std::pair<std::vector<int32_t>, std::vector<int32_t>>>{
               {{}, {}}, {{8}, {0}}, {{0}, {8}}, {{3, 3, 1}, {0, 2, 7}}})
        expect_copied(shape, dtype, from, to);
    // More than one launch takes, some of a page more than once.
    std::vector<int32_t> from, to;
    for (int32_t i = 0; i < 140; ++i) from.push_back(i / 2), to.push_back(299 - i);
    for (const Shape& shape : {Shape{300, 1, 1, 1}, Shape{300, 3, 5, 7}, Shape{300, 2, 16, 8}})
      expect_copied(shape, dtype, from, to);
  }
}

TEST_P(CopyKvPages, ScalesGoWithTheirPages) {
  const Shape shape{4, 2, 3, 5}, one_each{4, 2, 3};
  const PageBytes k = page_bytes(shape, DType::u8, 251), v = page_bytes(shape, DType::u8, 241),
                  k_scales = page_bytes(one_each, DType::f16, 47),
                  v_scales = page_bytes(one_each, DType::f16, 43);
  const Tensor keys = place(k, shape, DType::u8), values = place(v, shape, DType::u8),
               of_keys = place(k_scales, one_each, DType::f16),
               of_values = place(v_scales, one_each, DType::f16);
  const std::vector<int32_t> from = {3}, to = {1};
  copy_layer({keys, values, of_keys, of_values}, from, to);
  EXPECT_EQ(get_bytes(keys), after_copies(k, 4, from, to));
  EXPECT_EQ(get_bytes(values), after_copies(v, 4, from, to));
  EXPECT_EQ(get_bytes(of_keys), after_copies(k_scales, 4, from, to));
  EXPECT_EQ(get_bytes(of_values), after_copies(v_scales, 4, from, to));
  const TensorView misshapen = of_values.view().reshape({4, 6, 1});
  EXPECT_THROW(copy_layer({keys, values, of_keys, misshapen}, from, to), Error);
  EXPECT_THROW(copy_layer({keys, values, of_keys, {}}, from, to), Error);
}

// More layers than one launch takes, each with contents of its own.
TEST_P(CopyKvPages, EveryLayerIsCopied) {
  const Shape shape{5, 2, 3, 8};
  std::vector<PageBytes> bytes;
  std::vector<Tensor> tensors;
  for (size_t side = 0; side < 2 * 70; ++side) {
    bytes.push_back(page_bytes(shape, DType::bf16, 100 + side));
    tensors.push_back(place(bytes.back(), shape, DType::bf16));
  }
  std::vector<KvLayer> layers;
  for (size_t side = 0; side < tensors.size(); side += 2)
    layers.push_back({tensors[side], tensors[side + 1]});
  const std::vector<int32_t> from = {4, 0}, to = {1, 3};
  copy_kv_pages(ctx(), layers, from, to);
  for (size_t side = 0; side < tensors.size(); ++side)
    EXPECT_EQ(get_bytes(tensors[side]), after_copies(bytes[side], 5, from, to)) << side;
  copy_kv_pages(ctx(), {}, from, to);
}

TEST_P(CopyKvPages, BrokenRequestsAreRefused) {
  const Tensor k = garbage({4, 1, 2, 2}), v = garbage({4, 1, 2, 2});
  const auto copy = [&](const std::vector<int32_t>& from, const std::vector<int32_t>& to) {
    copy_layer({k, v}, from, to);
  };
  EXPECT_NO_THROW(copy({0, 0}, {1, 3}));
  EXPECT_THROW(copy({0}, {4}), Error);
  EXPECT_THROW(copy({-1}, {0}), Error);
  EXPECT_THROW(copy({0, 1}, {2}), Error);
  EXPECT_THROW(copy({0, 1}, {2, 2}), Error);
  EXPECT_THROW(copy({0, 1}, {1, 2}), Error);
  EXPECT_THROW(copy({0}, {0}), Error);
  const std::vector<int32_t> one = {1}, two = {2};
  EXPECT_THROW(copy_layer({k, v.view().slice(0, 3)}, one, two), Error);
  EXPECT_THROW(copy_layer({k.view().columns(0, 1), v.view().columns(0, 1)}, one, two), Error);
  EXPECT_THROW(copy_layer({k, garbage({4, 1, 2, 2}, DType::bf16)}, one, two), Error);
  const Tensor fewer = garbage({3, 1, 2, 2});
  const KvLayer layers[] = {{k, v}, {fewer, fewer}};
  EXPECT_THROW(copy_kv_pages(ctx(), layers, one, two), Error);
}

INSTANTIATE_TEST_SUITE_P(Machine, CopyKvPages, testing::ValuesIn(every_machine()), name_of_machine);

}  // namespace
}  // namespace shoal::ops
