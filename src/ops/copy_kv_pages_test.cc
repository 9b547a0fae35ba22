#include <utility>

#include "ops/attention.h"
#include "ops/vector_testing.h"

namespace shoal::ops {
namespace {

// Values that name their place, so that the oracle is the plain index arithmetic of [pages, heads, slots,
// dim].
template <typename T>
std::vector<T> numbered(int64_t count, int first) {
  std::vector<T> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<T>(static_cast<size_t>(first) + i);
  return values;
}

template <typename T>
void expect_copied_pages(Context& ctx, DType dtype, Shape shape, const std::vector<int32_t>& from,
                         const std::vector<int32_t>& to) {
  std::vector<T> k = numbered<T>(shape.elements(), 1), v = numbered<T>(shape.elements(), 7);
  std::vector<T> want_k = k, want_v = v;
  const int64_t page = shape.elements() / shape[0];
  for (size_t i = 0; i < from.size(); ++i)
    for (int64_t j = 0; j < page; ++j) {
      want_k[static_cast<size_t>(to[i] * page + j)] = k[static_cast<size_t>(from[i] * page + j)];
      want_v[static_cast<size_t>(to[i] * page + j)] = v[static_cast<size_t>(from[i] * page + j)];
    }
  copy_kv_pages(ctx, {TensorView::of(k.data(), dtype, shape), TensorView::of(v.data(), dtype, shape)}, from,
                to);
  EXPECT_EQ(k, want_k);
  EXPECT_EQ(v, want_v);
}

TEST(CopyKvPages, ScalesGoWithTheirPages) {
  ThreadTeam team(3);
  Workspace workspace;
  Context ctx{.team = &team, .workspace = &workspace};
  const Shape shape{4, 2, 3, 5}, one_each{4, 2, 3};
  std::vector<uint8_t> k = numbered<uint8_t>(shape.elements(), 1), v = numbered<uint8_t>(shape.elements(), 7);
  std::vector<uint16_t> k_scales = numbered<uint16_t>(24, 100), v_scales = numbered<uint16_t>(24, 200);
  std::vector<uint16_t> want_k = k_scales, want_v = v_scales;
  for (size_t i = 0; i < 6; ++i) want_k[6 + i] = k_scales[18 + i], want_v[6 + i] = v_scales[18 + i];
  const auto layer = [&](const Shape& of_v) {
    return KvLayer{TensorView::of(k.data(), DType::u8, shape), TensorView::of(v.data(), DType::u8, shape),
                   TensorView::of(k_scales.data(), DType::f16, one_each),
                   TensorView::of(v_scales.data(), DType::f16, of_v)};
  };
  const std::vector<int32_t> from = {3}, to = {1};
  copy_kv_pages(ctx, layer(one_each), from, to);
  EXPECT_EQ(k_scales, want_k);
  EXPECT_EQ(v_scales, want_v);
  EXPECT_THROW(copy_kv_pages(ctx, layer({4, 6, 1}), from, to), Error);
  KvLayer one_side = layer(one_each);
  one_side.v_scales = {};
  EXPECT_THROW(copy_kv_pages(ctx, one_side, from, to), Error);
}

TEST(CopyKvPages, MovesWholePagesAndNothingElse) {
  ThreadTeam team(3);
  Workspace workspace;
  Context ctx{.team = &team, .workspace = &workspace};
  for (const Shape& shape : {Shape{9, 1, 1, 1}, Shape{9, 3, 5, 7}, Shape{9, 2, 16, 81}})
    for (const auto& [from, to] : std::vector<std::pair<std::vector<int32_t>, std::vector<int32_t>>>{
             {{}, {}}, {{8}, {0}}, {{0}, {8}}, {{3, 3, 1}, {0, 2, 7}}}) {
      expect_copied_pages<float>(ctx, DType::f32, shape, from, to);
      expect_copied_pages<Bf16>(ctx, DType::bf16, shape, from, to);
      expect_copied_pages<uint8_t>(ctx, DType::u8, shape, from, to);
    }
}

TEST(CopyKvPages, BrokenRequestsAreRefused) {
  ThreadTeam team(1);
  Workspace workspace;
  Context ctx{.team = &team, .workspace = &workspace};
  const Tensor k = Tensor::zeros(DType::f32, {4, 1, 2, 2}), v = Tensor::zeros(DType::f32, {4, 1, 2, 2});
  const auto copy = [&](const std::vector<int32_t>& from, const std::vector<int32_t>& to) {
    copy_kv_pages(ctx, {k, v}, from, to);
  };
  EXPECT_NO_THROW(copy({0, 0}, {1, 3}));
  EXPECT_THROW(copy({0}, {4}), Error);
  EXPECT_THROW(copy({-1}, {0}), Error);
  EXPECT_THROW(copy({0, 1}, {2}), Error);
  EXPECT_THROW(copy({0, 1}, {2, 2}), Error);
  EXPECT_THROW(copy({0, 1}, {1, 2}), Error);
  EXPECT_THROW(copy({0}, {0}), Error);
  const std::vector<int32_t> one = {1}, two = {2};
  EXPECT_THROW(copy_kv_pages(ctx, {k, v.view().slice(0, 3)}, one, two), Error);
  EXPECT_THROW(copy_kv_pages(ctx, {k.view().columns(0, 1), v.view().columns(0, 1)}, one, two), Error);
  EXPECT_THROW(copy_kv_pages(ctx, {k, Tensor::zeros(DType::bf16, {4, 1, 2, 2})}, one, two), Error);
}

}  // namespace
}  // namespace shoal::ops
