// shoal_engine_bench: the figures of `shoal bench --random s1-mini` without the rest of the program.
#include <charconv>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "bench/load_figures.h"
#include "bench/model_figures.h"
#include "bench/report.h"
#include "ops/device_choice.h"
#include "ops/device_state.h"
#include "ops/execution.h"

namespace shoal {
namespace {

constexpr const char* kUsage =
    "usage: shoal_engine_bench [--device NAME] [--f32 | --f16] [--batches N,N,...] [--semantic-only]\n"
    "                          [--no-graphs] [--no-load] [--threads N] [--json FILE]\n";

struct Arguments {
  std::string device = "auto", json;
  DType dtype = DType::bf16;
  std::vector<int> batches;  // empty: the device's default list
  bool semantic_only = false, graphs = true, load = true;
  int threads = 0;
};

std::optional<int> whole_number(std::string_view text) {
  int value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size() || value < 0) return {};
  return value;
}

// Empty: not a list of numbers over 0.
std::vector<int> numbers(std::string_view text) {
  std::vector<int> values;
  while (true) {
    const size_t comma = std::min(text.find(','), text.size());
    const std::optional<int> value = whole_number(text.substr(0, comma));
    if (!value || *value == 0) return {};
    values.push_back(*value);
    if (comma == text.size()) return values;
    text.remove_prefix(comma + 1);
  }
}

// Empty if it is malformed.
std::optional<Arguments> parse(std::span<char*> words) {
  Arguments a;
  for (size_t i = 1; i < words.size(); ++i) {
    const std::string_view word = words[i];
    const auto is_with_value = [&](std::string_view name) { return word == name && i + 1 < words.size(); };
    if (word == "--f32") {
      a.dtype = DType::f32;
    } else if (word == "--f16") {
      a.dtype = DType::f16;
    } else if (word == "--semantic-only") {
      a.semantic_only = true;
    } else if (word == "--no-graphs") {
      a.graphs = false;
    } else if (word == "--no-load") {
      a.load = false;
    } else if (is_with_value("--device")) {
      a.device = words[++i];
    } else if (is_with_value("--json")) {
      a.json = words[++i];
    } else if (is_with_value("--threads")) {
      const std::optional<int> threads = whole_number(words[++i]);
      if (!threads) return {};
      a.threads = *threads;
    } else if (is_with_value("--batches")) {
      a.batches = numbers(words[++i]);
      if (a.batches.empty()) return {};
    } else {
      return {};
    }
  }
  return a;
}

void run(const Arguments& a) {
  std::ofstream file;
  if (!a.json.empty()) {
    file.open(a.json);
    if (!file) fail(ErrorCode::io, a.json, ": cannot be written");
  }
  const Device device = ops::choose_device(a.device);
  if (!ops::multiplies(device, a.dtype))
    fail(ErrorCode::unsupported, "--f16 needs a GPU, and the device is ", ops::describe(device));
  ThreadTeam team(a.threads);
  ops::Execution execution(device, team, {.record = a.graphs});
  ops::Context& ctx = execution.context();
  bench::ModelBenchOptions options = bench::ModelBenchOptions::for_device(device);
  options.formats = a.dtype;
  options.semantic_head = a.semantic_only;
  if (!a.batches.empty()) options.batches = a.batches;

  nlohmann::ordered_json report;
  const auto add = [&](const char* key, const auto& figures) {
    bench::print(figures);
    std::fflush(stdout);
    report[key] = bench::json_of(figures);
  };
  const bench::MachineLimits limits = bench::measure_machine(ctx);
  add("machine", limits);
  if (a.load) add("load", bench::bench_load(dual_ar::Config::s1_mini(), a.dtype, ctx));
  add("random", bench::bench_language_model("s1-mini", dual_ar::Config::s1_mini(), limits, options, ctx));
  if (a.json.empty()) return;
  file << report.dump(1) << '\n';
  file.close();
  if (!file) fail(ErrorCode::io, a.json, ": cannot be written");
}

}  // namespace
}  // namespace shoal

int main(int argc, char** argv) {
  const std::optional<shoal::Arguments> arguments = shoal::parse({argv, static_cast<size_t>(argc)});
  if (!arguments) {
    std::fputs(shoal::kUsage, stderr);
    return 2;
  }
  try {
    shoal::run(*arguments);
  } catch (const shoal::Error& error) {
    std::fprintf(stderr, "shoal_engine_bench: %s\n", error.what());
    return 1;
  }
  return 0;
}
