// Shared by the tests of the vector ops beyond matrix_testing.h: every instruction set as a parameter.
#pragma once

#include "ops/cpu/kernels/vector_kernels.h"
#include "ops/matrix_testing.h"
#include "ops/ref/vector.h"

namespace shoal::ops {

class IsaTest : public testing::TestWithParam<CpuIsa>, protected MatrixFixture {
 protected:
  void SetUp() override {
    if (GetParam() > best_cpu_isa()) GTEST_SKIP() << "this CPU has no " << name_of(GetParam());
    set_cpu_isa(GetParam());
  }
};

inline std::string name_of_isa(const testing::TestParamInfo<CpuIsa>& info) {
  return std::string(name_of(info.param));
}

inline auto every_isa() { return testing::Values(CpuIsa::portable, CpuIsa::avx2, CpuIsa::avx512); }

inline ref::Values slice(const ref::Values& values, int64_t begin, int64_t count) {
  return {values.begin() + begin, values.begin() + begin + count};
}

}  // namespace shoal::ops
