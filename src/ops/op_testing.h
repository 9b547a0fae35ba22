// What the tests of ops share on every machine: the instruction sets of CPUs, and a GPU.
#pragma once

#include <deque>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "ops/cpu_features.h"
#include "ops/execution.h"
#include "ops/segments.h"

namespace shoal::ops {

// What a test runs on.
struct OpMachine {
  std::string name;
  std::optional<CpuIsa> isa;  // none: a GPU
};

inline void PrintTo(const OpMachine& machine, std::ostream* out) { *out << machine.name; }
inline std::string name_of_machine(const testing::TestParamInfo<OpMachine>& info) { return info.param.name; }

std::vector<OpMachine> machines_of(std::initializer_list<CpuIsa> sets);
// Those of every_isa() (vector_testing.h).
std::vector<OpMachine> every_cpu();
// And "cuda", in a build without CUDA too: the objects of both builds are the same. There ctest does not list
// it (shoal_module.cmake).
std::vector<OpMachine> every_machine();
// And those sets that products alone have.
std::vector<OpMachine> every_product_cpu();
std::vector<OpMachine> every_product_machine();

// A machine's context, and values on their way to its memory and back.
class OpFixture {
 protected:
  OpFixture() = default;
  ~OpFixture();
  OpFixture(const OpFixture&) = delete;

  // Opens the context; call from SetUp. Skips the test where the machine is not there.
  void open(const OpMachine& machine);
  // Fails a test whose kernels have failed by its end; call from TearDown.
  void close();

  // The machine's: on a CPU with a team of two, on a GPU without graphs.
  Context& ctx() { return execution_->context(); }
  // On the CPU: packs and computes what is compared with.
  Context& host_ctx() { return host_->context(); }
  // What call() returns with the CPU's portable kernels in the machine's place: ctx(), put and get are the
  // CPU's.
  template <typename Call>
  auto on_portable_cpu(Call call) {
    const CpuIsa isa = cpu_isa();
    set_cpu_isa(CpuIsa::portable);
    std::swap(execution_, host_);
    auto result = call();
    std::swap(execution_, host_);
    set_cpu_isa(isa);
    return result;
  }

  // In the machine's memory, dense; rounded to nearest even for bf16 and f16.
  Tensor put(std::span<const float> values, Shape shape, DType dtype = DType::f32);
  Tensor put(std::span<const int32_t> values, Shape shape);
  Tensor put(std::span<const int64_t> values, Shape shape);
  Tensor put(std::span<const uint8_t> values, Shape shape);
  // The values that put would make of these.
  static std::vector<float> rounded_to(std::span<const float> values, DType dtype);
  // Full of NaN.
  Tensor garbage(Shape shape, DType dtype = DType::f32);

  // From the machine's memory (any strides), row-major, after waiting for the context.
  std::vector<float> get(TensorView from);         // of f32, bf16 or f16
  std::vector<int32_t> get_ints(TensorView from);  // of i32
  std::vector<uint8_t> get_bytes(TensorView from);

  // The same segments with their tables where kernels read them, until the test ends.
  Segments placed(Segments segments);
  // Everything that the workspace gives from now on has been overwritten with NaN.
  void poison(int64_t floats = int64_t{4} << 20);

 private:
  ThreadTeam team_{2}, host_team_{1};
  std::unique_ptr<Execution> host_ = std::make_unique<Execution>(Device{}, host_team_), execution_;
  std::deque<Tensor> tables_;
};

// One test of an op on one machine.
class OpTest : public testing::TestWithParam<OpMachine>, protected OpFixture {
 protected:
  void SetUp() override { open(GetParam()); }
  void TearDown() override { close(); }
  bool on_gpu() const { return !GetParam().isa; }
  // What a product on this machine may read: f16 on a GPU alone.
  std::vector<DType> narrow_types() const {
    return on_gpu() ? std::vector{DType::bf16, DType::f16} : std::vector{DType::bf16};
  }
};

}  // namespace shoal::ops
