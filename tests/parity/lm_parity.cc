#include "tests/parity/lm_parity.h"

#include <gtest/gtest.h>
#include <vector>

#include "ops/sample.h"
#include "tests/parity/lm_driver.h"
#include "tests/parity/lm_fixture.h"

namespace shoal::parity {
namespace {

using dual_ar::Config;
using dual_ar::DualAr;

// Independent f32 implementations agree to 1.3e-6 (fixtures/README.md).
constexpr double kF32Bound = 2e-6;
// Where no official bf16 run is at hand. Every product rounds its input to bf16 (half an ulp is 2^-9, about
// 0.2 % at most, 0.1 % on average); a few layers of independent errors stay well under 2 %.
constexpr double kBf16Bound = 2e-2;
constexpr double kBf16Slack = 1.5;  // over the official bf16 run's own distance

DualAr load(const LmFixture& fixture, ops::Context& ctx, DType dtype, dual_ar::HeadRows head_rows) {
  return DualAr::load(fixture.checkpoint(), fixture.config(), ctx,
                      {.formats = dtype, .head_rows = head_rows});
}

// The values of one case: the whole prompt at once, then one frame whose codes are given.
struct CaseValues {
  std::vector<float> slow_logits;  // [T, vocab]
  TapRecorder slow, frame;
};

// The frame after a hidden state, drawn as it is given.
TapRecorder forced_frame(const LmFixture& fixture, LmDriver& driver, TensorView hidden,
                         const std::vector<int32_t>& codes) {
  TapRecorder frame;
  frame.forced = codes;
  frame.forced.insert(frame.forced.begin(), fixture.config().semantic_begin + codes[0]);
  const dual_ar::FrameRequest request;
  EXPECT_EQ(driver.draw(hidden, {&request, 1}, &frame), frame.forced);
  return frame;
}

CaseValues run_case(const LmFixture& fixture, const DualAr& model, ops::Context& ctx,
                    const std::string& name) {
  CaseValues result;
  const std::vector<int32_t> prompt = fixture.columns(name, "prompt");
  const auto count = static_cast<int64_t>(prompt.size()) / fixture.config().columns();
  LmDriver driver(model, ctx, {.columns_per_sequence = count});
  const Tensor hidden = driver.forward(0, prompt, &result.slow);

  std::vector<float>& last_layer = result.slow.values[concat("layer.", fixture.config().slow_layers - 1)];
  result.slow_logits =
      driver.logits(TensorView::of(last_layer.data(), DType::f32, {count, fixture.config().slow.dim}));
  result.frame = forced_frame(fixture, driver, hidden, fixture.codes(name, "tf_codes"));
  return result;
}

// Goldens hold the slow logits of some columns, or of the last one: all columns act on it.
std::string slow_golden(const LmFixture& fixture, const std::string& name) {
  return fixture.has(name, "slow_logits_all") ? "slow_logits_all" : "slow_logits_last";
}

// [frames, N - 1, residual_codes], from the values recorded codebook by codebook.
std::vector<float> fast_logits(const Config& config, const TapRecorder& taps) {
  const auto width = static_cast<size_t>(config.residual_codes());
  const size_t frames = taps.values.at("fast_logits.1").size() / width;
  std::vector<float> out;
  for (size_t frame = 0; frame < frames; ++frame) {
    for (int64_t k = 1; k < config.num_codebooks; ++k) {
      const auto row = std::span(taps.values.at(concat("fast_logits.", k))).subspan(frame * width, width);
      out.insert(out.end(), row.begin(), row.end());
    }
  }
  return out;
}

void check_case_values(LmFixture& fixture, const DualAr& model, ops::Context& ctx, const std::string& name) {
  SCOPED_TRACE(fixture.dir() + " " + name);
  const CaseValues ours = run_case(fixture, model, ctx, name);
  // Goldens in S1's form hold every step; those in S2's form may hold fewer.
  const auto check = [&](const std::string& golden, std::span<const float> values) {
    if (!fixture.is_s1() && !fixture.has(name, golden)) return fixture.absent(name, golden);
    fixture.expect_close(name, golden, values, kF32Bound);
  };
  check("embed", ours.slow.values.at("embed.0"));
  for (int64_t i = 0; i < fixture.config().slow_layers; ++i)
    check(concat("layer", i), ours.slow.values.at(concat("layer.", i)));
  const std::string slow = slow_golden(fixture, name);
  fixture.expect_close(name, slow, ours.slow_logits, kF32Bound);
  check("fast_in", ours.frame.values.at("fast_in.0"));
  for (int64_t i = 0; i < fixture.config().fast_layers; ++i)
    check(concat("fast_layer", i, "_tf"), ours.frame.values.at(concat("fast_layer.", i)));
  fixture.expect_close(name, "fast_logits_tf", fast_logits(fixture.config(), ours.frame), kF32Bound,
                       fixture.fast_logits(name, "fast_logits_tf"));
}

// The official hidden state is the input of the fast transformer: after the projection to fast_dim, if there
// is one. The codes of the frame do not matter.
void check_long_prompt(LmFixture& fixture, const DualAr& model, ops::Context& ctx) {
  if (!fixture.has("long", "prompt")) return fixture.absent("long", "prompt");
  SCOPED_TRACE(fixture.dir() + " long");
  const std::vector<int32_t> prompt = fixture.columns("long", "prompt");
  const auto count = static_cast<int64_t>(prompt.size()) / fixture.config().columns();
  LmDriver driver(model, ctx, {.columns_per_sequence = count});
  const Tensor hidden = driver.forward(0, prompt);
  const std::vector<int32_t> codes(static_cast<size_t>(fixture.config().num_codebooks));
  const TapRecorder frame = forced_frame(fixture, driver, hidden, codes);
  fixture.expect_close("long", "hidden_last", frame.values.at("fast_in.0"), kF32Bound);
  fixture.expect_close("long", "slow_logits_last", driver.logits(hidden), kF32Bound);
}

// One greedy stream; whether it is the golden one. Where that ended by itself, ours is given room to go on,
// and must not.
bool check_stream(LmFixture& fixture, const DualAr& model, ops::Context& ctx, const std::string& name,
                  const std::string& golden, float repetition_penalty, TapRecorder* recorder = nullptr) {
  SCOPED_TRACE(fixture.dir() + " " + name + " " + golden);
  const std::vector<int32_t> prompt = fixture.columns(name, "prompt");
  const std::vector<int32_t> expected = fixture.columns(name, golden);
  const auto width = fixture.config().columns();
  const auto frames = static_cast<int64_t>(expected.size()) / width;
  const bool ended = expected[expected.size() - static_cast<size_t>(width)] == fixture.config().im_end;
  const int64_t most = frames + (ended ? 8 : 0);

  dual_ar::Sampling sampling = dual_ar::Sampling::defaults(fixture.config().family);
  sampling.repetition_penalty = repetition_penalty;
  sampling.top_p = ops::kGreedyTopP;
  sampling.top_k = fixture.is_s1() ? 0 : 1;  // S2's second draw has a top_p of its own
  LmDriver driver(model, ctx, {.columns_per_sequence = static_cast<int64_t>(prompt.size()) / width + most});
  return fixture.expect_equal(name, golden, driver.generate(0, prompt, sampling, most, recorder));
}

void check_s1_streams(LmFixture& fixture, ops::Context& ctx) {
  const DualAr model = load(fixture, ctx, DType::f32, dual_ar::HeadRows::all);
  for (const auto& [name, _] : fixture.cases()) {
    TapRecorder steps;
    const bool same = check_stream(fixture, model, ctx, name, "greedy_rp1.0_tokens", 1.0f, &steps);
    check_stream(fixture, model, ctx, name, "greedy_rp1.5_tokens", 1.5f);
    if (!same) continue;  // another stream has other logits
    SCOPED_TRACE(fixture.dir() + " " + name);
    fixture.expect_close(name, "greedy_slow_logits", steps.values.at("slow_logits.0"), kF32Bound);
    fixture.expect_close(name, "greedy_fast_logits", fast_logits(fixture.config(), steps), kF32Bound,
                         fixture.fast_logits(name, "greedy_fast_logits"));
  }
}

void check_s2_streams(LmFixture& fixture, ops::Context& ctx) {
  for (const auto head_rows : {dual_ar::HeadRows::semantic, dual_ar::HeadRows::all}) {
    const DualAr model = load(fixture, ctx, DType::f32, head_rows);
    for (const auto& [name, _] : fixture.cases())
      check_stream(fixture, model, ctx, name, "greedy_tokens", 1.0f);
  }
}

// The bound follows from the official bf16 run where there is one.
double bf16_bound(LmFixture& fixture, const std::string& name, const std::string& golden) {
  const auto read = [&](const std::string& which) {
    return golden.starts_with("fast") ? fixture.fast_logits(name, which) : fixture.floats(name, which);
  };
  const std::string official = "bf16." + golden;
  if (!fixture.has(name, official)) {
    fixture.absent(name, official);
    return kBf16Bound;
  }
  const std::vector<float> exact = read(golden), run = read(official);
  EXPECT_EQ(run.size(), exact.size()) << name << "." << official;
  return run.size() == exact.size() ? kBf16Slack * distance(run, exact) : 0;
}

void check_case_bf16(LmFixture& fixture, const DualAr& model, ops::Context& ctx, const std::string& name) {
  SCOPED_TRACE(fixture.dir() + " " + name);
  const CaseValues ours = run_case(fixture, model, ctx, name);
  const std::string slow = slow_golden(fixture, name), fast = "fast_logits_tf";
  fixture.expect_close(name, slow, ours.slow_logits, bf16_bound(fixture, name, slow));
  fixture.expect_close(name, fast, fast_logits(fixture.config(), ours.frame), bf16_bound(fixture, name, fast),
                       fixture.fast_logits(name, fast));
}

}  // namespace

void check_lm_values(const std::string& dir) {
  LmMachine machine;
  LmFixture fixture = LmFixture::open(dir, "language model, f32");
  const DualAr model = load(fixture, machine.context, DType::f32, dual_ar::HeadRows::all);
  for (const auto& [name, _] : fixture.cases()) check_case_values(fixture, model, machine.context, name);
  check_long_prompt(fixture, model, machine.context);
  fixture.report();
}

void check_lm_streams(const std::string& dir) {
  LmMachine machine;
  LmFixture fixture = LmFixture::open(dir, "language model, greedy streams");
  if (fixture.is_s1()) {
    check_s1_streams(fixture, machine.context);
  } else {
    check_s2_streams(fixture, machine.context);
  }
  fixture.report();
}

void check_lm_bf16(const std::string& dir) {
  LmMachine machine;
  LmFixture fixture = LmFixture::open(dir, "language model, bf16");
  const DualAr model = load(fixture, machine.context, DType::bf16, dual_ar::HeadRows::all);
  for (const auto& [name, _] : fixture.cases()) check_case_bf16(fixture, model, machine.context, name);
  fixture.report();
}

}  // namespace shoal::parity
