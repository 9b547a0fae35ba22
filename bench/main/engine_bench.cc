// shoal_engine_bench [--f32] [--threads N]: the figures of `shoal bench --random s1-mini` without the rest of
// the program.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "bench/load_figures.h"
#include "bench/model_figures.h"
#include "bench/report.h"

int main(int argc, char** argv) {
  using namespace shoal;
  bench::ModelBenchOptions options;
  int threads = 0;
  for (int i = 1; i < argc; ++i) {
    if (!std::strcmp(argv[i], "--f32")) {
      options.dtype = DType::f32;
    } else if (!std::strcmp(argv[i], "--threads") && i + 1 < argc) {
      threads = std::atoi(argv[++i]);
    } else {
      std::fputs("usage: shoal_engine_bench [--f32] [--threads N]\n", stderr);
      return 2;
    }
  }
  try {
    ThreadTeam team(threads);
    Workspace workspace;
    ops::Context ctx{.device = {}, .team = &team, .workspace = &workspace, .stream = nullptr};
    const bench::MachineLimits limits = bench::measure_machine(ctx);
    bench::print(limits);
    bench::print(bench::bench_s1_mini_load(options.dtype, ctx));
    bench::print(bench::bench_s1_mini(limits, options, ctx));
  } catch (const Error& error) {
    std::fprintf(stderr, "shoal_engine_bench: %s\n", error.what());
    return 1;
  }
  return 0;
}
