// A decode step in one call, recorded where the device records, draws the frames that one sequence by itself
// draws, whatever the batch, its size and its order from step to step.
#include <algorithm>
#include <gtest/gtest.h>
#include <random>

#include "models/dual_ar/dual_ar.h"
#include "models/dual_ar/random_model_testing.h"
#include "tests/parity/lm_driver.h"

namespace shoal::dual_ar {
namespace {

using parity::LmDriver;
using parity::LmMachine;

constexpr int64_t kMostColumns = 80;

struct StepRequest {
  std::vector<int32_t> prompt;
  Sampling sampling;
  int64_t max_new_tokens = 0;
};

std::vector<StepRequest> random_step_requests(const Config& config, int64_t count, std::mt19937& random) {
  std::vector<StepRequest> requests;
  for (int64_t i = 0; i < count; ++i) {
    StepRequest request{testing::random_columns(config, 1 + static_cast<int64_t>(random() % 20), random),
                        Sampling::defaults(config.family), 4 + static_cast<int64_t>(random() % 40)};
    request.sampling.seed = random();
    request.sampling.temperature = 0.5f + 0.1f * static_cast<float>(random() % 10);
    request.sampling.top_p = random() % 4 == 0 ? 0.0f : 0.9f;
    request.sampling.top_k = random() % 4 == 0 ? 7 : 0;
    request.sampling.quirks.semantic_only = random() % 2 == 0;
    requests.push_back(std::move(request));
  }
  return requests;
}

std::vector<int32_t> alone(const DualAr& model, const StepRequest& request) {
  LmMachine machine;
  LmDriver driver(model, machine.context, {.columns_per_sequence = kMostColumns, .page_size = 16});
  return driver.generate(0, request.prompt, request.sampling, request.max_new_tokens);
}

// Prompts one after the other, then steps of a random part of the unfinished sequences in random order.
std::vector<std::vector<int32_t>> together(const DualAr& model, const std::vector<StepRequest>& requests,
                                           std::mt19937& random) {
  LmMachine machine(2, /*record=*/true);
  LmDriver driver(model, machine.context,
                  {.sequences = static_cast<int64_t>(requests.size()),
                   .columns_per_sequence = kMostColumns,
                   .page_size = 1 + static_cast<int64_t>(random() % 32),
                   .placement_seed = random()});
  const int64_t width = model.config().columns();
  std::vector<Utterance> utterances;
  for (size_t i = 0; i < requests.size(); ++i) {
    const StepRequest& request = requests[i];
    utterances.emplace_back(model.config(), request.sampling,
                            static_cast<int64_t>(request.prompt.size()) / width, request.max_new_tokens);
    const FrameRequest first = utterances[i].next_request();
    const Tensor hidden = driver.forward(static_cast<int64_t>(i), request.prompt);
    utterances[i].accept(driver.draw(hidden, {&first, 1}));
  }
  while (std::any_of(utterances.begin(), utterances.end(), [](const auto& u) { return !u.finished(); })) {
    std::vector<size_t> order;
    for (size_t i = 0; i < utterances.size(); ++i)
      if (!utterances[i].finished() && random() % 4 != 0) order.push_back(i);
    if (order.empty()) continue;
    std::shuffle(order.begin(), order.end(), random);
    std::vector<LmDriver::Chunk> chunks;
    std::vector<FrameRequest> draws;
    for (const size_t i : order) {
      chunks.push_back({static_cast<int64_t>(i), utterances[i].last_frame()});
      draws.push_back(utterances[i].next_request());
    }
    const std::vector<int32_t> frames = driver.decode(chunks, draws);
    for (size_t at = 0; at < order.size(); ++at)
      utterances[order[at]].accept(
          std::span(frames).subspan(at * static_cast<size_t>(width), static_cast<size_t>(width)));
  }
  std::vector<std::vector<int32_t>> answers;
  for (const Utterance& u : utterances) answers.emplace_back(u.frames().begin(), u.frames().end());
  return answers;
}

class DecodeStep : public ::testing::TestWithParam<std::tuple<uint32_t, DType>> {};

TEST_P(DecodeStep, ASequenceSamplesTheSameAloneAndInABatch) {
  const auto [seed, dtype] = GetParam();
  std::mt19937 random(seed);
  const Config config = testing::random_config(random);
  LmMachine machine;
  const DualAr model = DualAr::random(config, machine.context, {.formats = dtype}, seed);
  const auto requests = random_step_requests(config, 1 + static_cast<int64_t>(random() % 30), random);
  const auto answers = together(model, requests, random);
  for (size_t i = 0; i < requests.size(); ++i)
    EXPECT_EQ(answers[i], alone(model, requests[i])) << "request " << i << " of " << requests.size();
}

INSTANTIATE_TEST_SUITE_P(Seeds, DecodeStep,
                         ::testing::Combine(::testing::Range(200u, 208u),
                                            ::testing::Values(DType::f32, DType::bf16)),
                         [](const auto& suite) {
                           return concat(name_of(std::get<1>(suite.param)), "_", std::get<0>(suite.param));
                         });

}  // namespace
}  // namespace shoal::dual_ar
