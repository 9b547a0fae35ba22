#include "ops/cpu_features.h"

#include <atomic>
#include <cstdlib>
#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "base/error.h"

namespace shoal::ops {
namespace {

constexpr std::string_view kNames[] = {"portable", "avx2", "avx512", "avx512_bf16", "amx"};

#if defined(__x86_64__)

// Linux hands out the 8 KB of tile registers on request only, once per process (all its threads).
bool tiles_permitted() {
  constexpr int kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr int kTileData = 18;               // XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

bool has_amx() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) return false;
  constexpr unsigned kAmx = 1u << 22 | 1u << 24 | 1u << 25;  // bf16, tiles, int8
  return (edx & kAmx) == kAmx && tiles_permitted();
}

CpuIsa detect() {
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("f16c"))
    return CpuIsa::portable;
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("avx512dq"))
    return CpuIsa::avx2;
  if (!__builtin_cpu_supports("avx512bf16") || !__builtin_cpu_supports("avx512vnni")) return CpuIsa::avx512;
  return has_amx() ? CpuIsa::amx : CpuIsa::avx512_bf16;
}

#else

CpuIsa detect() { return CpuIsa::portable; }

#endif

CpuIsa checked(CpuIsa isa) {
  if (isa > best_cpu_isa())
    fail(ErrorCode::unsupported, "cpu isa: ", name_of(isa), " was asked for, this machine has ",
         name_of(best_cpu_isa()));
  return isa;
}

CpuIsa from_environment() {
  const char* wanted = std::getenv("SHOAL_CPU_ISA");
  if (wanted == nullptr || *wanted == '\0') return best_cpu_isa();
  const std::optional<CpuIsa> isa = parse_cpu_isa(wanted);
  if (!isa)
    fail(ErrorCode::invalid_argument,
         "SHOAL_CPU_ISA: expected portable, avx2, avx512, avx512_bf16 or amx, got '", wanted, "'");
  return checked(*isa);
}

std::atomic<CpuIsa>& current() {
  static std::atomic<CpuIsa> isa{from_environment()};
  return isa;
}

}  // namespace

std::string_view name_of(CpuIsa isa) { return kNames[static_cast<int>(isa)]; }

std::optional<CpuIsa> parse_cpu_isa(std::string_view name) {
  for (int i = 0; i < static_cast<int>(std::size(kNames)); ++i)
    if (kNames[i] == name) return static_cast<CpuIsa>(i);
  return std::nullopt;
}

CpuIsa best_cpu_isa() {
  static const CpuIsa best = detect();
  return best;
}

CpuIsa cpu_isa() { return current().load(std::memory_order_relaxed); }

void set_cpu_isa(CpuIsa isa) { current().store(checked(isa), std::memory_order_relaxed); }

}  // namespace shoal::ops
