// Which CPU kernels this process uses.
#pragma once

#include <optional>
#include <string_view>

namespace shoal::ops {

// Ordered: a machine that has one has those before it (amx implies avx512_bf16). `portable` runs everywhere.
// f32 results are bit-identical on all of them. bf16 matrix products are too, with two exceptions:
// avx512_bf16, whose instruction sums in another order, and denormal intermediate results, which amx flushes
// to zero.
enum class CpuIsa { portable, avx2, avx512, avx512_bf16, amx };

std::string_view name_of(CpuIsa isa);
std::optional<CpuIsa> parse_cpu_isa(std::string_view name);

// The best this machine (and its kernel: AMX needs a permission) can do.
CpuIsa best_cpu_isa();
// The instruction set that the ops use: best_cpu_isa(), or a lower one set by set_cpu_isa or SHOAL_CPU_ISA
// (read once).
CpuIsa cpu_isa();
// For tests and benchmarks; packed matrices serve every set. Throws Error(unsupported) above the best.
void set_cpu_isa(CpuIsa isa);

}  // namespace shoal::ops
