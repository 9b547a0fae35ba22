// A sequence's frames and logits do not depend on the other sequences: bit for bit, whatever the batch, the
// cutting of its prompt, the positions of its pages, the page size and the number of threads.
#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>
#include <random>

#include "models/dual_ar/dual_ar.h"
#include "models/dual_ar/random_model_testing.h"
#include "tests/parity/lm_driver.h"

namespace shoal::dual_ar {
namespace {

using parity::LmDriver;
using parity::LmMachine;
using parity::TapRecorder;

struct Request {
  std::vector<int32_t> prompt;
  Sampling sampling;
  int64_t max_new_tokens;
};

struct Answer {
  std::vector<int32_t> frames;
  std::vector<float> logits;  // the slow logits of every frame
};

int64_t between(std::mt19937& random, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(random);
}

std::vector<Request> random_requests(const Config& config, int64_t count, std::mt19937& random) {
  std::vector<Request> requests;
  for (int64_t i = 0; i < count; ++i) {
    Sampling sampling = Sampling::defaults(config.family);
    sampling.seed = random();
    sampling.temperature = 0.5f + 0.1f * static_cast<float>(between(random, 0, 9));
    sampling.top_p = between(random, 0, 3) == 0 ? 0.0f : 0.9f;
    sampling.repetition_penalty = between(random, 0, 1) ? 1.5f : 1.0f;
    sampling.quirks.semantic_only = between(random, 0, 1) == 1;
    requests.push_back(
        {testing::random_columns(config, between(random, 1, 40), random), sampling, between(random, 1, 20)});
  }
  return requests;
}

Answer answer_alone(const DualAr& model, const Request& request) {
  LmMachine machine;
  LmDriver driver(model, machine.context, {.columns_per_sequence = 64, .page_size = 16});
  TapRecorder taps;
  Answer answer;
  answer.frames = driver.generate(0, request.prompt, request.sampling, request.max_new_tokens, &taps);
  answer.logits = taps.values.at("slow_logits.0");
  return answer;
}

// One request on its way through a batch.
struct Running {
  Utterance utterance;
  size_t fed = 0;  // values of the prompt
  std::vector<float> logits;
};

class Batch {
 public:
  Batch(const DualAr& model, const std::vector<Request>& requests, std::mt19937& random)
      : model_(model),
        requests_(requests),
        random_(random),
        machine_(static_cast<int>(between(random, 1, 3))),
        driver_(model, machine_.context,
                {.sequences = static_cast<int64_t>(requests.size()),
                 .columns_per_sequence = 64,
                 .page_size = between(random, 1, 40),
                 .placement_seed = random()}) {
    for (const Request& request : requests) {
      const int64_t columns = static_cast<int64_t>(request.prompt.size()) / model.config().columns();
      running_.push_back(
          {Utterance(model.config(), request.sampling, columns, request.max_new_tokens), 0, {}});
    }
  }

  std::vector<Answer> run() {
    while (step()) {
    }
    std::vector<Answer> answers;
    for (const Running& r : running_)
      answers.push_back({{r.utterance.frames().begin(), r.utterance.frames().end()}, r.logits});
    return answers;
  }

 private:
  // Some of the unfinished requests, in any order: prompt chunks, single frames, and empty chunks.
  bool step() {
    std::vector<size_t> order;
    bool unfinished = false;
    for (size_t i = 0; i < running_.size(); ++i) {
      if (running_[i].utterance.finished()) continue;
      unfinished = true;
      if (between(random_, 0, 3) > 0) order.push_back(i);
    }
    std::shuffle(order.begin(), order.end(), random_);
    std::vector<LmDriver::Chunk> chunks;
    for (size_t i : order) chunks.push_back({static_cast<int64_t>(i), next_columns(i)});
    const Tensor hidden = driver_.forward(chunks);
    draw(order, chunks, hidden);
    return unfinished;
  }

  std::span<const int32_t> next_columns(size_t i) {
    Running& r = running_[i];
    const std::span<const int32_t> prompt = requests_[i].prompt;
    if (r.fed == prompt.size()) return r.utterance.last_frame();
    const auto width = static_cast<size_t>(model_.config().columns());
    const size_t count = std::min(width * static_cast<size_t>(between(random_, 0, 9)), prompt.size() - r.fed);
    r.fed += count;
    return prompt.subspan(r.fed - count, count);
  }

  void draw(const std::vector<size_t>& order, const std::vector<LmDriver::Chunk>& chunks,
            const Tensor& hidden) {
    std::vector<size_t> ready;
    std::vector<FrameRequest> requests;
    std::vector<float> rows;
    for (size_t at = 0; at < order.size(); ++at) {
      const size_t i = order[at];
      if (running_[i].fed < requests_[i].prompt.size() || chunks[at].columns.empty()) continue;
      ready.push_back(i);
      requests.push_back(running_[i].utterance.next_request());
      const float* row = hidden.view().row<float>(static_cast<int64_t>(at));
      rows.insert(rows.end(), row, row + hidden.dim(1));
    }
    if (ready.empty()) return;
    const auto width = static_cast<size_t>(model_.config().columns());
    TapRecorder taps;
    const std::vector<int32_t> frames = driver_.draw(
        TensorView::of(rows.data(), DType::f32, {static_cast<int64_t>(ready.size()), hidden.dim(1)}),
        requests, &taps);
    const std::vector<float>& logits = taps.values.at("slow_logits.0");
    const size_t vocab = logits.size() / ready.size();
    for (size_t at = 0; at < ready.size(); ++at) {
      Running& r = running_[ready[at]];
      const auto row = logits.begin() + static_cast<std::ptrdiff_t>(at * vocab);
      r.logits.insert(r.logits.end(), row, row + static_cast<std::ptrdiff_t>(vocab));
      r.utterance.accept(std::span<const int32_t>(frames).subspan(at * width, width));
    }
  }

  const DualAr& model_;
  const std::vector<Request>& requests_;
  std::mt19937& random_;
  LmMachine machine_;
  LmDriver driver_;
  std::vector<Running> running_;
};

class BatchInvariance : public ::testing::TestWithParam<std::tuple<uint32_t, DType>> {};

TEST_P(BatchInvariance, ASequenceIsTheSameAloneAndInARandomBatch) {
  const auto [seed, dtype] = GetParam();
  std::mt19937 random(seed);
  const Config config = testing::random_config(random);
  LmMachine machine;
  const DualAr model = DualAr::random(config, machine.context, {.formats = dtype}, seed);
  const auto requests = random_requests(config, between(random, 2, 16), random);
  const auto answers = Batch(model, requests, random).run();
  for (size_t i = 0; i < requests.size(); ++i) {
    const Answer alone = answer_alone(model, requests[i]);
    EXPECT_EQ(answers[i].frames, alone.frames) << "request " << i << " of " << requests.size();
    ASSERT_EQ(answers[i].logits.size(), alone.logits.size());
    EXPECT_EQ(std::memcmp(answers[i].logits.data(), alone.logits.data(), 4 * alone.logits.size()), 0)
        << "logits of request " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, BatchInvariance,
                         ::testing::Combine(::testing::Range(100u, 108u),
                                            ::testing::Values(DType::f32, DType::bf16)),
                         [](const auto& suite) {
                           return concat(name_of(std::get<1>(suite.param)), "_", std::get<0>(suite.param));
                         });

// Taps have every row of every layer computed; without them only the last rows go on behind the last
// attention.
void expect_last_rows_of_a_whole_layer(const Config& config, const Formats& formats, int64_t sequences,
                                       std::mt19937& random) {
  LmMachine machine;
  const DualAr model = DualAr::random(config, machine.context, {.formats = formats}, random());
  std::vector<std::vector<int32_t>> prompts;
  std::vector<LmDriver::Chunk> chunks;
  for (int64_t i = 0; i < sequences; ++i)
    prompts.push_back(testing::random_columns(config, between(random, 1, 40), random));
  for (size_t i = 0; i < prompts.size(); ++i) chunks.push_back({static_cast<int64_t>(i), prompts[i]});
  const auto hidden = [&](Taps* taps) {
    LmDriver driver(model, machine.context, {.sequences = sequences, .columns_per_sequence = 64});
    return driver.forward(chunks, taps);
  };
  TapRecorder taps;
  const Tensor whole = hidden(&taps), wanted = hidden(nullptr);
  ASSERT_TRUE(taps.values.contains(concat("layer.", config.slow_layers - 1)));
  EXPECT_EQ(std::memcmp(whole.as<float>(), wanted.as<float>(), static_cast<size_t>(whole.bytes())), 0);
}

TEST_P(BatchInvariance, TheLastLayersLastRowsAreThoseOfAWholeLayer) {
  const auto [seed, dtype] = GetParam();
  std::mt19937 random(seed);
  const Config config = testing::random_config(random);
  expect_last_rows_of_a_whole_layer(config, dtype, between(random, 1, 8), random);
}

// A GPU multiplies so many rows of such matrices by other kernels, whose sums wait.
TEST(WideModel, TheLastLayersLastRowsAreThoseOfAWholeLayer) {
  for (const Formats& formats : {Formats(DType::bf16), Formats(DType::i8, DType::bf16, DType::bf16)}) {
    for (const int64_t sequences : {3, 12, 40}) {
      std::mt19937 random(7);
      Config config = testing::random_config(random);
      config.slow.dim = config.fast.dim = 1024;
      config.slow.heads = 16, config.slow.kv_heads = 8, config.slow.head_dim = 64, config.slow.hidden = 1536;
      SCOPED_TRACE(concat(name_of(formats.weights), ", ", sequences, " sequences"));
      expect_last_rows_of_a_whole_layer(config, formats, sequences, random);
    }
  }
}

// Empty chunks do not change their row of the result.
TEST(ForwardSlow, SequencesWithoutRowsKeepTheirHiddenState) {
  std::mt19937 random(9);
  const Config config = testing::random_config(random);
  LmMachine machine;
  const DualAr model = DualAr::random(config, machine.context, {}, 1);
  LmDriver driver(model, machine.context, {.sequences = 5, .columns_per_sequence = 16});
  const auto first = testing::random_columns(config, 3, random),
             last = testing::random_columns(config, 5, random);
  const std::vector<LmDriver::Chunk> chunks = {{0, {}}, {1, first}, {2, {}}, {3, {}}, {4, last}};
  const Tensor hidden = driver.forward(chunks);
  const auto is = [&](int64_t row, const Tensor& wanted) {
    return std::memcmp(hidden.view().row<float>(row), wanted.as<float>(),
                       static_cast<size_t>(wanted.bytes())) == 0;
  };
  const auto alone = [&](const std::vector<int32_t>& columns) {
    return LmDriver(model, machine.context, {.columns_per_sequence = 16}).forward(0, columns);
  };
  Tensor zeros(DType::f32, {hidden.dim(1)});
  std::fill_n(zeros.as<float>(), hidden.dim(1), 0.0f);
  EXPECT_TRUE(is(0, zeros) && is(2, zeros) && is(3, zeros));
  EXPECT_TRUE(is(1, alone(first)));
  EXPECT_TRUE(is(4, alone(last)));
  EXPECT_FALSE(is(1, alone(last)));
}

}  // namespace
}  // namespace shoal::dual_ar
