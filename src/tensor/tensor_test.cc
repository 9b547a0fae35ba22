#include "tensor/tensor.h"

#include <cmath>
#include <gtest/gtest.h>

#include "tensor/workspace.h"

namespace shoal {
namespace {

TEST(TensorView, SlicesAndColumnsKeepStrides) {
  Tensor t(DType::f32, {4, 6});
  for (int i = 0; i < 24; ++i) t.as<float>()[i] = static_cast<float>(i);
  const TensorView part = t.view().slice(1, 3).columns(2, 5);
  EXPECT_EQ(part.shape(), (Shape{2, 3}));
  EXPECT_EQ(part.row<float>(1)[0], 14.0f);
  EXPECT_FALSE(part.is_contiguous());
  EXPECT_TRUE(t.view().slice(1, 3).is_contiguous());
  EXPECT_THROW(part.reshape({6}), Error);
  EXPECT_THROW(t.view().slice(2, 5), Error);
}

TEST(TensorView, WrongTypeIsAnError) {
  const Tensor t(DType::bf16, {3});
  EXPECT_THROW(t.as<float>(), Error);
  EXPECT_NO_THROW(t.as<Bf16>());
}

TEST(Bf16, RoundsToNearestEven) {
  EXPECT_EQ(round_to_bf16(1.0f), 1.0f);
  EXPECT_EQ(float_to_bf16(1.00390625f), 0x3f80);  // halfway between 0x3f80 and 0x3f81: even
  EXPECT_EQ(float_to_bf16(1.01171875f), 0x3f82);  // halfway between 0x3f81 and 0x3f82: even
  EXPECT_EQ(float_to_bf16(1.00390637f), 0x3f81);  // just above halfway
  EXPECT_TRUE(std::isnan(bf16_to_float(float_to_bf16(std::bit_cast<float>(0x7f800001u)))));
}

TEST(Workspace, SteadyStateAllocatesNothing) {
  Workspace ws;
  const auto step = [&] {
    const Workspace::Scope outer(ws);
    const TensorView a = ws.alloc(DType::f32, {1000, 300});
    {
      const Workspace::Scope inner(ws);
      ws.alloc(DType::f32, {5000, 300});
    }
    const TensorView b = ws.alloc(DType::bf16, {777, 3});
    EXPECT_EQ(reinterpret_cast<uintptr_t>(b.data()) % 64, 0u);
    EXPECT_NE(a.data(), b.data());
  };
  step();
  step();
  const int64_t settled = ws.growths();
  for (int i = 0; i < 5; ++i) step();
  EXPECT_EQ(ws.growths(), settled);
}

TEST(Workspace, LimitIsATypedError) {
  Workspace ws({}, 1 << 20);
  const Workspace::Scope scope(ws);
  try {
    ws.alloc(DType::f32, {1 << 20});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::resource_exhausted);
  }
}

}  // namespace
}  // namespace shoal
