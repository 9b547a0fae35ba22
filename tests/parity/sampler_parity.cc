#include "tests/parity/sampler_parity.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

#include "ops/sample.h"
#include "tests/parity/fish_goldens.h"
#include "tests/parity/tally.h"

namespace shoal::parity {
namespace {

constexpr double kUnit = 0x1p-24;  // half an ulp of f32 relative to its value

std::vector<float> dense(const ops::SamplingDistribution& distribution, size_t vocab) {
  std::vector<float> values(vocab);
  for (size_t i = 0; i < distribution.ids.size(); ++i)
    values[static_cast<size_t>(distribution.ids[i])] = distribution.probabilities[i];
  return values;
}

// The divisor of the probabilities in the official code: noise of Exp(1), or the uniform numbers behind it.
std::vector<float> noise_of(const Goldens& tensors, const std::string& name) {
  if (tensors.has(name + "expq")) return tensors.floats(name + "expq");
  std::vector<float> noise = tensors.floats(name + "uniform");
  for (float& u : noise) u = -std::log(u);
  return noise;
}

void check_draw(const ops::SampleRow& row, const std::vector<float>& logits, const std::vector<float>& golden,
                const std::vector<float>& noise, int64_t drawn) {
  ASSERT_EQ(golden.size(), logits.size());
  ASSERT_EQ(noise.size(), logits.size());
  const std::vector<float> ours = dense(ops::sampling_distribution(logits, row), logits.size());
  // The logits differ by a rounding or two before they are divided by the temperature; so do both exp.
  const double sharpness = 1 / std::max(row.temperature, 1e-5f);
  size_t best = 0;
  for (size_t i = 0; i < golden.size(); ++i) {
    const double relative = 4 * kUnit * (8 + 2 * std::abs(logits[i]) * sharpness);
    EXPECT_NEAR(ours[i], golden[i], golden[i] * relative) << "probs, id " << i;
    if (ours[i] / noise[i] > ours[best] / noise[best]) best = i;
  }
  EXPECT_EQ(static_cast<int64_t>(best), drawn) << "argmax_p_over_q";
}

void check_sampler(const Goldens& tensors, const Json& settings, const std::string& name) {
  const auto number = [&](const char* key, double otherwise) {
    const Json* found = settings.find(key);
    return found ? found->as_number() : otherwise;
  };
  const std::vector<int32_t> previous =
      tensors.has(name + "prev") ? tensors.integers(name + "prev") : std::vector<int32_t>();
  const ops::SampleRow row{.temperature = static_cast<float>(settings.at("temperature").as_number()),
                           .top_p = static_cast<float>(settings.at("top_p").as_number()),
                           .top_k = static_cast<int32_t>(number("top_k", 0)),
                           .repetition_penalty = static_cast<float>(number("repetition_penalty", 1)),
                           .penalised = previous};
  check_draw(row, tensors.floats(name + "logits"), tensors.floats(name + "probs"), noise_of(tensors, name),
             settings.at("argmax_p_over_q").as_integer());
}

}  // namespace

void check_samplers(const std::string& dir) {
  const FishGoldens goldens = FishGoldens::open(dir);
  Tally tally(dir, "samplers");
  const Json::Array* samplers = goldens.list("sampler");
  if (!samplers) tally.absent("sampler", "sampler cases");
  for (size_t i = 0; samplers && i < samplers->size(); ++i) {
    const std::string name = concat("sampler.", i);
    SCOPED_TRACE(dir + " " + name);
    check_sampler(goldens.tensors, (*samplers)[i], name + ".");
    tally.tried(name, "probabilities and draw", goldens.tensors.get(name + ".probs").elements() + 1);
  }
  tally.report();
}

}  // namespace shoal::parity
