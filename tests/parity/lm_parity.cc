#include "tests/parity/lm_parity.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <optional>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "ops/sample.h"
#include "tests/parity/lm_driver.h"
#include "weights/checkpoint.h"
#include "weights/convert.h"
#include "weights/name_maps.h"

namespace shoal::parity {
namespace {

using dual_ar::Config;
using dual_ar::DualAr;
using dual_ar::Family;

// Independent f32 implementations agree to 1.3e-6 (fixtures/README.md).
constexpr double kF32Bound = 2e-6;
// Where no official bf16 run is at hand. Every product rounds its input to bf16 (half an ulp is 2^-9, about
// 0.2 % at most, 0.1 % on average); a few layers of independent errors stay well under 2 %.
constexpr double kBf16Bound = 2e-2;
constexpr double kBf16Slack = 1.5;  // over the official bf16 run's own distance

struct Fixture {
  std::string dir;
  Family family;
  Json goldens;
  weights::Checkpoint values;
  weights::Checkpoint checkpoint;
  Config config;

  const char* prefix() const { return family == Family::s1 ? "lm." : "s2."; }
  const Json::Object& cases() const { return goldens.at("cases").as_object(); }

  bool has(const std::string& name) const { return values.contains(prefix() + name); }
  std::vector<float> floats(const std::string& name) const {
    const TensorView* view = values.find(prefix() + name);
    if (!view) fail(ErrorCode::not_found, dir, ": no golden ", prefix(), name);
    std::vector<float> out(static_cast<size_t>(view->elements()));
    weights::to_f32(*view, out);
    return out;
  }
  // Stored [1 + N, columns]; returned [columns, 1 + N].
  std::vector<int32_t> columns(const std::string& name) const {
    const TensorView* view = values.find(prefix() + name);
    if (!view) fail(ErrorCode::not_found, dir, ": no golden ", prefix(), name);
    const int64_t height = view->dim(0), count = view->dim(1);
    std::vector<int32_t> out;
    for (int64_t column = 0; column < count; ++column)
      for (int64_t row = 0; row < height; ++row) out.push_back(view->row<int32_t>(row)[column]);
    return out;
  }
  std::vector<int32_t> ids(const std::string& name) const {
    const TensorView* view = values.find(prefix() + name);
    if (!view) fail(ErrorCode::not_found, dir, ": no golden ", prefix(), name);
    return {view->as<int32_t>(), view->as<int32_t>() + view->elements()};
  }
};

std::optional<std::string> goldens_of(const std::string& dir) {
  for (const char* name : {"/lm_goldens", "/s2_goldens"})
    if (is_regular_file(dir + name + ".json")) return dir + name;
  return {};
}

// As find_model_files, which also wants a codec: a fixture may have none.
std::string weights_of(const std::string& dir) {
  for (const char* name : {"/model.safetensors.index.json", "/model.safetensors", "/model.pth"})
    if (is_regular_file(dir + name)) return dir + name;
  fail(ErrorCode::not_found, dir, ": no model.safetensors.index.json, model.safetensors or model.pth");
}

Fixture open_fixture(const std::string& dir) {
  const auto goldens = goldens_of(dir);
  if (!goldens) fail(ErrorCode::not_found, dir, ": neither lm_goldens.json nor s2_goldens.json");
  Fixture fixture{.dir = dir,
                  .family = Family::s1,
                  .goldens = Json::read_file(*goldens + ".json"),
                  .values = weights::Checkpoint::open(*goldens + ".safetensors"),
                  .checkpoint = weights::Checkpoint::open(weights_of(dir)),
                  .config = Config::read(dir + "/config.json")};
  weights::normalise_dual_ar_names(fixture.checkpoint);
  Config& config = fixture.config;
  fixture.family = config.family;
  const auto id = [](const Json& value) { return static_cast<int32_t>(value.as_integer()); };
  config.semantic_begin = id(fixture.goldens.at("semantic_begin_id"));
  config.semantic_end = id(fixture.goldens.at("semantic_end_id"));
  config.im_end = id(fixture.goldens.at("special_ids").at("<|im_end|>"));
  return fixture;
}

DualAr load(const Fixture& fixture, ops::Context& ctx, DType dtype, dual_ar::HeadRows head_rows) {
  return DualAr::load(fixture.checkpoint, fixture.config, ctx, {.dtype = dtype, .head_rows = head_rows});
}

// ||a - b|| / ||b||
double distance(std::span<const float> a, std::span<const float> b) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    difference += (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
    norm += double{b[i]} * b[i];
  }
  return std::sqrt(difference / std::max(norm, 1e-60));
}

void expect_close(const std::string& what, std::span<const float> ours, std::span<const float> golden,
                  double bound) {
  ASSERT_EQ(ours.size(), golden.size()) << what;
  ASSERT_FALSE(golden.empty()) << what;
  EXPECT_LE(distance(ours, golden), bound) << what;
}

// The values of one case: the whole prompt at once, then one frame whose codes are given.
struct CaseValues {
  std::vector<float> slow_logits;  // [T, vocab]
  TapRecorder slow, frame;
};

CaseValues run_case(const Fixture& fixture, const DualAr& model, ops::Context& ctx, const std::string& name) {
  CaseValues result;
  const std::vector<int32_t> prompt = fixture.columns(name + ".prompt");
  const auto count = static_cast<int64_t>(prompt.size()) / fixture.config.columns();
  LmDriver driver(model, ctx, {.columns_per_sequence = count});
  const Tensor hidden = driver.forward(0, prompt, &result.slow);

  std::vector<float>& last_layer = result.slow.values[concat("layer.", fixture.config.slow_layers - 1)];
  result.slow_logits.resize(static_cast<size_t>(count * model.head_outputs()));
  model.slow_logits(ctx, TensorView::of(last_layer.data(), DType::f32, {count, fixture.config.slow.dim}),
                    TensorView::of(result.slow_logits.data(), DType::f32, {count, model.head_outputs()}));

  const std::vector<int32_t> codes = fixture.ids(name + ".tf_codes");
  result.frame.forced = codes;
  result.frame.forced.insert(result.frame.forced.begin(), fixture.config.semantic_begin + codes[0]);
  std::vector<int32_t> frame(result.frame.forced.size());
  const dual_ar::FrameRequest request;
  model.generate_frames(ctx, hidden, {&request, 1}, frame, &result.frame);
  EXPECT_EQ(frame, result.frame.forced);
  return result;
}

// Logits of codebooks 1.. one after the other: what the model computes of a golden [N, codebook_size].
std::vector<float> used_fast_logits(const Config& config, std::span<const float> golden) {
  std::vector<float> out;
  for (int64_t k = 1; k < config.num_codebooks; ++k) {
    const auto row = golden.subspan(static_cast<size_t>(k * config.codebook_size));
    out.insert(out.end(), row.begin(), row.begin() + config.residual_codes());
  }
  return out;
}

std::vector<float> fast_logits(const Config& config, const TapRecorder& frame) {
  std::vector<float> out;
  for (int64_t k = 1; k < config.num_codebooks; ++k) {
    const std::vector<float>& row = frame.values.at(concat("fast_logits.", k));
    out.insert(out.end(), row.begin(), row.end());
  }
  return out;
}

void check_case_values(const Fixture& fixture, const DualAr& model, ops::Context& ctx,
                       const std::string& name) {
  SCOPED_TRACE(fixture.dir + " " + name);
  const CaseValues ours = run_case(fixture, model, ctx, name);
  const auto check = [&](const std::string& golden, std::span<const float> values) {
    if (fixture.has(name + "." + golden))
      expect_close(golden, values, fixture.floats(name + "." + golden), kF32Bound);
  };
  check("embed", ours.slow.values.at("embed.0"));
  for (int64_t i = 0; i < fixture.config.slow_layers; ++i)
    check(concat("layer", i), ours.slow.values.at(concat("layer.", i)));
  expect_close("slow_logits_all", ours.slow_logits, fixture.floats(name + ".slow_logits_all"), kF32Bound);
  check("fast_in", ours.frame.values.at("fast_in.0"));
  for (int64_t i = 0; i < fixture.config.fast_layers; ++i)
    check(concat("fast_layer", i, "_tf"), ours.frame.values.at(concat("fast_layer.", i)));
  expect_close("fast_logits_tf", fast_logits(fixture.config, ours.frame),
               used_fast_logits(fixture.config, fixture.floats(name + ".fast_logits_tf")), kF32Bound);
}

void check_long_prompt(const Fixture& fixture, const DualAr& model, ops::Context& ctx) {
  if (!fixture.has("long.prompt")) return;
  SCOPED_TRACE(fixture.dir + " long");
  const std::vector<int32_t> prompt = fixture.columns("long.prompt");
  const auto count = static_cast<int64_t>(prompt.size()) / fixture.config.columns();
  LmDriver driver(model, ctx, {.columns_per_sequence = count});
  const Tensor hidden = driver.forward(0, prompt);
  const Tensor logits(DType::f32, {1, model.head_outputs()});
  model.slow_logits(ctx, hidden, logits);
  expect_close("hidden_last", hidden.span<float>(), fixture.floats("long.hidden_last"), kF32Bound);
  expect_close("slow_logits_last", logits.span<float>(), fixture.floats("long.slow_logits_last"), kF32Bound);
}

// One greedy stream. Where the golden one ended by itself, ours is given room to go on, and must not.
void check_stream(const Fixture& fixture, const DualAr& model, ops::Context& ctx, const std::string& name,
                  const std::string& golden, float repetition_penalty, TapRecorder* recorder = nullptr) {
  SCOPED_TRACE(fixture.dir + " " + name + " " + golden);
  const std::vector<int32_t> prompt = fixture.columns(name + ".prompt");
  const std::vector<int32_t> expected = fixture.columns(name + "." + golden);
  const auto width = fixture.config.columns();
  const auto frames = static_cast<int64_t>(expected.size()) / width;
  const bool ended = expected[expected.size() - static_cast<size_t>(width)] == fixture.config.im_end;
  const int64_t most = frames + (ended ? 8 : 0);

  dual_ar::Sampling sampling = dual_ar::Sampling::defaults(fixture.family);
  sampling.repetition_penalty = repetition_penalty;
  sampling.top_p = ops::kGreedyTopP;
  sampling.top_k = fixture.family == Family::s2 ? 1 : 0;  // S2's second draw has a top_p of its own
  LmDriver driver(model, ctx, {.columns_per_sequence = static_cast<int64_t>(prompt.size()) / width + most});
  EXPECT_EQ(driver.generate(0, prompt, sampling, most, recorder), expected);
}

void check_s1_streams(const Fixture& fixture, ops::Context& ctx) {
  const DualAr model = load(fixture, ctx, DType::f32, dual_ar::HeadRows::all);
  for (const auto& [name, _] : fixture.cases()) {
    TapRecorder steps;
    check_stream(fixture, model, ctx, name, "greedy_rp1.0_tokens", 1.0f, &steps);
    check_stream(fixture, model, ctx, name, "greedy_rp1.5_tokens", 1.5f);
    if (testing::Test::HasFailure() || !fixture.has(name + ".greedy_slow_logits")) continue;
    SCOPED_TRACE(fixture.dir + " " + name);
    expect_close("greedy_slow_logits", steps.values.at("slow_logits.0"),
                 fixture.floats(name + ".greedy_slow_logits"), kF32Bound);
  }
}

void check_s2_streams(const Fixture& fixture, ops::Context& ctx) {
  for (const auto head_rows : {dual_ar::HeadRows::semantic, dual_ar::HeadRows::all}) {
    const DualAr model = load(fixture, ctx, DType::f32, head_rows);
    for (const auto& [name, _] : fixture.cases())
      check_stream(fixture, model, ctx, name, "greedy_tokens", 1.0f);
  }
}

void check_case_bf16(const Fixture& fixture, const DualAr& model, ops::Context& ctx,
                     const std::string& name) {
  SCOPED_TRACE(fixture.dir + " " + name);
  const CaseValues ours = run_case(fixture, model, ctx, name);
  const auto check = [&](const std::string& what, std::span<const float> values, auto&& used) {
    const std::vector<float> golden = used(fixture.floats(name + "." + what));
    const std::string official = name + ".bf16." + what;
    const double bound =
        fixture.has(official) ? kBf16Slack * distance(used(fixture.floats(official)), golden) : kBf16Bound;
    expect_close(what, values, golden, bound);
  };
  check("slow_logits_all", ours.slow_logits, [](std::vector<float> all) { return all; });
  check("fast_logits_tf", fast_logits(fixture.config, ours.frame),
        [&](const std::vector<float>& all) { return used_fast_logits(fixture.config, all); });
}

}  // namespace

bool is_lm_fixture(const std::string& dir) { return goldens_of(dir).has_value(); }

void check_lm_values(const std::string& dir) {
  LmMachine machine;
  const Fixture fixture = open_fixture(dir);
  const DualAr model = load(fixture, machine.context, DType::f32, dual_ar::HeadRows::all);
  for (const auto& [name, _] : fixture.cases()) check_case_values(fixture, model, machine.context, name);
  check_long_prompt(fixture, model, machine.context);
}

void check_lm_streams(const std::string& dir) {
  LmMachine machine;
  const Fixture fixture = open_fixture(dir);
  if (fixture.family == Family::s1) {
    check_s1_streams(fixture, machine.context);
  } else {
    check_s2_streams(fixture, machine.context);
  }
}

void check_lm_bf16(const std::string& dir) {
  LmMachine machine;
  const Fixture fixture = open_fixture(dir);
  const DualAr model = load(fixture, machine.context, DType::bf16, dual_ar::HeadRows::all);
  for (const auto& [name, _] : fixture.cases()) check_case_bf16(fixture, model, machine.context, name);
}

void check_lm_fixture(const std::string& dir) {
  check_lm_values(dir);
  check_lm_streams(dir);
  check_lm_bf16(dir);
}

}  // namespace shoal::parity
