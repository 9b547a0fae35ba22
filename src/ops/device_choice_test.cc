#include "ops/device_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <vector>

#include "base/log.h"

namespace shoal::ops {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

const CudaDevice kOld{.name = "GeForce GTX 1080", .memory_bytes = int64_t{8} << 30, .major = 6, .minor = 1};
const CudaDevice kOldest{.name = "A100", .memory_bytes = int64_t{40} << 30, .major = 8, .minor = 0};
const CudaDevice kNew{.name = "H200", .memory_bytes = int64_t{140} << 30, .major = 9, .minor = 0};

Device gpu(int index) { return {DeviceKind::cuda, index}; }

Device chosen(std::string_view name, std::vector<CudaDevice> devices) {
  const DeviceChoice choice = choose_device(name, devices, true);
  EXPECT_THAT(choice.warning, IsEmpty());
  return choice.device;
}

std::string warned(std::vector<CudaDevice> devices) {
  const DeviceChoice choice = choose_device("auto", devices, true);
  EXPECT_EQ(choice.device, Device{});
  return choice.warning;
}

void expect_refused(std::string_view name, std::vector<CudaDevice> devices, bool with_cuda, ErrorCode code,
                    const testing::Matcher<std::string>& message) {
  try {
    choose_device(name, devices, with_cuda);
    ADD_FAILURE() << name << " was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_THAT(error.message(), message);
  }
}

TEST(DeviceChoice, CpuChoosesTheCpuOnEveryMachine) {
  EXPECT_EQ(chosen("cpu", {kNew}), Device{});
  EXPECT_EQ(chosen("cpu", {}), Device{});
  const DeviceChoice without = choose_device("auto", {}, false);
  EXPECT_EQ(without.device, Device{});
  EXPECT_THAT(without.warning, IsEmpty()) << "nobody expects a GPU of a build that has none";
}

TEST(DeviceChoice, CudaChoosesTheFirstGpuThatIsNewEnough) {
  for (const std::string_view name : {"auto", "cuda"}) {
    EXPECT_EQ(chosen(name, {kOldest, kNew}), gpu(0));
    EXPECT_EQ(chosen(name, {kOld, kNew}), gpu(1));
  }
  EXPECT_EQ(chosen("cuda:0", {kNew, kOldest}), gpu(0));
  EXPECT_EQ(chosen("cuda:1", {kNew, kOldest}), gpu(1));
}

TEST(DeviceChoice, AutoFallsBackWithAWarning) {
  EXPECT_THAT(warned({}), AllOf(HasSubstr("no NVIDIA GPU"), HasSubstr("CPU")));
  EXPECT_THAT(warned({kOld}), AllOf(HasSubstr("GeForce GTX 1080"), HasSubstr("6.1"), HasSubstr("8.0")));
}

TEST(DeviceChoice, UnavailableDevicesAreRefusedWithARemedy) {
  expect_refused("cuda", {}, false, ErrorCode::unsupported,
                 AllOf(HasSubstr("use cpu"), HasSubstr("preset cuda")));
  expect_refused("cuda:0", {}, false, ErrorCode::unsupported, HasSubstr("use cpu"));
  expect_refused("cuda", {}, true, ErrorCode::unavailable,
                 AllOf(HasSubstr("nvidia-smi"), HasSubstr("use cpu")));
  expect_refused("cuda:2", {}, true, ErrorCode::unavailable, HasSubstr("no NVIDIA GPU"));
  const auto too_old =
      AllOf(HasSubstr("GeForce GTX 1080"), HasSubstr("6.1"), HasSubstr("8.0"), HasSubstr("use cpu"));
  expect_refused("cuda", {kOld}, true, ErrorCode::unsupported, too_old);
  expect_refused("cuda:1", {kNew, kOld}, true, ErrorCode::unsupported, AllOf(too_old, HasSubstr("cuda:1")));
  expect_refused("cuda:1", {kNew}, true, ErrorCode::unavailable, HasSubstr("there is cuda:0 only"));
  expect_refused("cuda:7", {kNew, kNew, kNew}, true, ErrorCode::unavailable, HasSubstr("cuda:0 to cuda:2"));
}

TEST(DeviceChoice, UnknownNamesAreInvalid) {
  for (const char* const name : {"", "gpu", "cuda0", "cuda:", "cuda:x", "cuda:1x", "cuda:-1", "mps"})
    expect_refused(name, {kNew}, true, ErrorCode::invalid_argument, HasSubstr("expected"));
}

TEST(DeviceChoice, ChoosingForThisMachineLogsTheWarning) {
  std::vector<std::string> remarks;
  set_log_sink([&](LogLevel, std::string_view message) { remarks.emplace_back(message); });
  const Device device = choose_device("auto");
  set_log_sink({});
  const DeviceChoice expected = choose_device("auto", cuda_devices(), built_with_cuda());
  EXPECT_EQ(device, expected.device);
  EXPECT_EQ(remarks, expected.warning.empty() ? std::vector<std::string>{} : std::vector{expected.warning});
}

}  // namespace
}  // namespace shoal::ops
