// Which kernel makes a residual unit on which GPU; none of them need be there.
#include <gtest/gtest.h>
#include <optional>

#include "ops/cuda/conv/residual_unit.h"

namespace shoal::ops::cuda {
namespace {

const Machine kH200{132, 227 << 10, true, 90}, kA100{108, 163 << 10, false, 80},
    kRtx3090{82, 99 << 10, false, 86}, kL4{58, 99 << 10, false, 89}, kB200{148, 227 << 10, false, 100},
    kRtx5090{170, 99 << 10, false, 120}, kT4{40, 64 << 10, false, 75};
constexpr int64_t kAllChannels[] = {64, 96, 128, 192, 256, 384};

// The convolutions of a unit that kernels can do, to be changed; without weights, which a choice does not
// read.
struct Unit {
  explicit Unit(int64_t channels) : alpha(DType::f32, {channels}), narrow_alpha(alpha) {
    for (PackedMatrix* matrix : {&wide, &narrow})
      matrix->format = DType::bf16, matrix->outputs = matrix->depth = channels;
    wide.taps = 7;
  }
  ResidualConvs convs() const { return {&wide, dilation, &narrow, alpha, narrow_alpha}; }

  PackedMatrix wide, narrow;
  int64_t dilation = 9;
  Tensor alpha;
  TensorView narrow_alpha;
};

std::optional<UnitKernel> kernel_of(const Unit& unit, const Machine& machine) {
  return choose_unit_kernel(unit.convs(), machine);
}

TEST(ChooseUnitKernel, WgmmaWhereTheTensorCoresHaveIt) {
  for (const int64_t channels : kAllChannels) EXPECT_EQ(kernel_of(Unit(channels), kH200), UnitKernel::wgmma);
}

TEST(ChooseUnitKernel, MmaOnEveryOtherGpuFrom80On) {
  for (const Machine& machine : {kA100, kRtx3090, kL4, kB200, kRtx5090})
    for (const int64_t channels : kAllChannels)
      EXPECT_EQ(kernel_of(Unit(channels), machine), UnitKernel::mma)
          << machine.architecture << ", " << channels << " channels";
}

TEST(ChooseUnitKernel, MmaTakesAtMost96KB) {
  Machine machine = kL4;
  machine.shared_bytes = 96 << 10;
  for (const int64_t channels : kAllChannels) EXPECT_EQ(kernel_of(Unit(channels), machine), UnitKernel::mma);
}

TEST(ChooseUnitKernel, MmaOn90WithoutRoomForWgmma) {
  Machine machine = kH200;
  machine.shared_bytes = 100 << 10;
  EXPECT_EQ(kernel_of(Unit(384), machine), UnitKernel::mma);
}

TEST(ChooseUnitKernel, NoneBefore80OrWithoutSharedMemory) {
  for (const int64_t channels : kAllChannels) EXPECT_EQ(kernel_of(Unit(channels), kT4), std::nullopt);
  Machine machine = kA100;
  machine.shared_bytes = 48 << 10;
  EXPECT_EQ(kernel_of(Unit(384), machine), std::nullopt);
  EXPECT_EQ(kernel_of(Unit(64), machine), UnitKernel::mma);
}

TEST(ChooseUnitKernel, EitherCanBeForcedOnAnH200) {
  for (const int64_t channels : kAllChannels)
    for (const UnitKernel kernel : {UnitKernel::wgmma, UnitKernel::mma}) {
      EXPECT_TRUE(can_do(kernel, Unit(channels).convs(), kH200));
      EXPECT_EQ(can_do(kernel, Unit(channels).convs(), kA100), kernel == UnitKernel::mma);
    }
}

TEST(ChooseUnitKernel, NoneForOtherUnits) {
  const auto expect_none = [](const Unit& unit) {
    for (const Machine& machine : {kH200, kL4}) EXPECT_EQ(kernel_of(unit, machine), std::nullopt);
  };
  for (const int64_t channels : {16, 40, 512, 768}) expect_none(Unit(channels));
  Unit wider(192), fewer_taps(192), exact(192), mixed(192), without_snake(192);
  wider.dilation = 10;
  fewer_taps.wide.taps = 5;
  exact.wide.format = exact.narrow.format = DType::f32;
  mixed.narrow.format = DType::f16;
  without_snake.narrow_alpha = {};
  for (const Unit* unit : {&wider, &fewer_taps, &exact, &mixed, &without_snake}) expect_none(*unit);
}

}  // namespace
}  // namespace shoal::ops::cuda
