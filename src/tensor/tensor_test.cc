#include "tensor/tensor.h"

#include <cmath>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

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

TEST(Workspace, MergesWithinItsLimit) {
  constexpr int64_t kMiB = int64_t{1} << 20;
  Workspace ws({}, 3 * kMiB);
  {
    const Workspace::Scope scope(ws);
    ws.alloc(DType::f32, {kMiB / 4});
    ws.alloc(DType::f32, {kMiB / 2});
    EXPECT_THROW(ws.alloc(DType::f32, {16}), Error);
  }
  const Workspace::Scope scope(ws);
  EXPECT_EQ(ws.capacity_bytes(), 3 * kMiB);
  const int64_t merged = ws.growths();
  ws.alloc(DType::f32, {3 * kMiB / 4});  // one piece, which neither block had room for
  EXPECT_EQ(ws.growths(), merged);
  EXPECT_THROW(ws.alloc(DType::f32, {16}), Error);
}

void take_two_blocks(Workspace& ws) {
  const Workspace::Scope scope(ws);
  ws.alloc(DType::f32, {int64_t{16} << 20});
  ws.alloc(DType::f32, {int64_t{17} << 20});
}

// Bytes of address space this process has taken.
rlim_t address_space() {
  rlim_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
}

// Exits with 0 when the arena lives through a merge for which the system had no memory.
[[noreturn]] void merge_without_memory() {
  Workspace ws;
  take_two_blocks(ws);
  rlimit limit{};
  getrlimit(RLIMIT_AS, &limit);
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = address_space() - (rlim_t{64} << 20);
  if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(2);
  try {
    const Workspace::Scope scope(ws);
    _exit(3);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::resource_exhausted) _exit(4);
  }
  limit.rlim_cur = before;
  if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(5);
  take_two_blocks(ws);
  const int64_t apart = ws.growths();
  const Workspace::Scope scope(ws);
  _exit(ws.growths() == apart + 1 ? 0 : 6);
}

TEST(WorkspaceDeathTest, AFailedMergeIsATypedErrorAndTheNextOneWorks) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's shadow memory is larger than the limit";
#endif
  EXPECT_EXIT(merge_without_memory(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace shoal
