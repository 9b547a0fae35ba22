// For equal logits a GPU samples the same as the CPU.
#include "ops/draw.h"

#include "ops/cuda/device/cuda_testing.h"
#include "ops/cuda/sampling/draw_testing.h"
#include "ops/transfer.h"

namespace shoal::ops::cuda {
namespace {

constexpr int64_t kCodebooks = 3, kMost = 16, kColumns = 1 + kCodebooks;

// A batch of rows of all kinds, and the lists that go with it.
struct Batch {
  Batch(int64_t rows, int64_t row_vocabulary, unsigned seed)
      : vocabulary(row_vocabulary), random(seed), codes(static_cast<size_t>(rows * kCodebooks * kMost)) {
    for (int64_t i = 0; i < rows; ++i) {
      const std::vector<float> row =
          logits_of(static_cast<LogitKind>(i % kLogitKinds), vocabulary, seed + static_cast<unsigned>(i));
      logits.insert(logits.end(), row.begin(), row.end());
      settings.push_back(random.next());
    }
    // Some ids out of range, some twice.
    for (int32_t& code : codes) code = random.below(vocabulary + 2) - 1;
    for (DrawRow& row : settings) row.penalised_codes = random.below(kMost + 1);
  }
  int64_t rows() const { return static_cast<int64_t>(settings.size()); }

  // Penalises and redraws tokens of `head`, restricts some rows where something can be drawn then.
  void list_tokens(const TokenHead& head, bool restrict) {
    const auto any_token = [&] {
      return random.below(4) == 0 ? head.im_end : head.semantic_begin - 2 + random.below(vocabulary + 4);
    };
    for (DrawRow& row : settings) {
      for (int32_t& token : row.tokens) token = any_token();
      for (int32_t& token : row.recent_tokens) token = any_token();
      row.penalised_tokens = random.below(kMostPenalised + 1);
      row.recent = random.below(kMostRecent + 1);
      row.restricted = restrict && random.below(2) == 0;
    }
  }

  int64_t vocabulary;
  DrawRows random;
  std::vector<float> logits;
  std::vector<int32_t> codes;
  std::vector<DrawRow> settings;
};

class CudaDrawTest : public CudaTest {
 protected:
  // The frames that rows [begin, end) of the batch draw, with the logits `gap` values apart.
  template <typename Draw>
  std::vector<int32_t> draw(Context& on, Batch& batch, int64_t begin, int64_t end, int64_t gap, Draw call) {
    const Workspace::Scope scope(*on.workspace);
    const int64_t rows = end - begin, width = batch.vocabulary + gap;
    std::vector<float> spread(static_cast<size_t>(rows * width), 1e9f);
    for (int64_t i = 0; i < rows; ++i)
      std::copy_n(batch.logits.begin() + (begin + i) * batch.vocabulary, batch.vocabulary,
                  spread.begin() + i * width);
    const auto first = static_cast<size_t>(begin), count = static_cast<size_t>(rows);
    const DrawTable table{upload(on, std::as_bytes(std::span(batch.settings).subspan(first, count)))
                              .reshape({rows, static_cast<int64_t>(sizeof(DrawRow))}),
                          upload(on, std::span<const int32_t>(batch.codes)
                                         .subspan(first * kCodebooks * kMost, count * kCodebooks * kMost))
                              .reshape({rows, kCodebooks, kMost})};
    std::vector<int32_t> empty(count * kColumns, -7);
    const TensorView frames = upload(on, std::span<const int32_t>(empty)).reshape({rows, kColumns});
    const TensorView logits = upload(on, std::span<const float>(spread)).reshape({rows, width});
    call(logits.columns(0, batch.vocabulary), table, frames);
    std::vector<int32_t> drawn(count * kColumns);
    download(on, frames, drawn.data());
    return drawn;
  }

  std::vector<int32_t> tokens(Context& on, Batch& batch, const TokenHead& head, int64_t begin, int64_t end,
                              int64_t gap = 0) {
    return draw(on, batch, begin, end, gap,
                [&](TensorView logits, const DrawTable& table, TensorView frames) {
                  draw_tokens(on, logits, table, head, frames);
                });
  }
  std::vector<int32_t> codes(Context& on, Batch& batch, int64_t codebook, int64_t begin, int64_t end,
                             int64_t gap = 0) {
    return draw(on, batch, begin, end, gap,
                [&](TensorView logits, const DrawTable& table, TensorView frames) {
                  draw_codes(on, logits, table, codebook, frames);
                });
  }
};

TEST_F(CudaDrawTest, CodesEqualTheCpu) {
  for (const int64_t vocabulary : {1, 5, 17, 127, 1024, 2560, 2561, 4097, 5120, 5121, 32'000})
    for (unsigned round = 0; round < (vocabulary < 10'000 ? 6u : 2u); ++round) {
      Batch batch(60, vocabulary, 1 + 100 * round);
      const int64_t codebook = 1 + round % 2, gap = static_cast<int64_t>(round % 4);
      EXPECT_EQ(codes(ctx(), batch, codebook, 0, 60, gap), codes(host_ctx(), batch, codebook, 0, 60))
          << vocabulary << " round " << round;
    }
}

TEST_F(CudaDrawTest, CodesFromTheWholeVocabularyEqualTheCpu) {
  Batch batch(40, 155'776, 1);
  EXPECT_EQ(codes(ctx(), batch, 2, 0, 40), codes(host_ctx(), batch, 2, 0, 40));
}

// The last row of a semantic head is the end token; in a whole head the tokens are in the middle.
TokenHead head_for(int64_t vocabulary, bool semantic) {
  const auto size = static_cast<int32_t>(vocabulary);
  TokenHead head{.semantic_begin = 1000, .semantic_end = 1000 + size - 2, .im_end = 3, .semantic = semantic};
  if (!semantic)
    head.semantic_begin = size / 4, head.semantic_end = size / 4 + size / 2, head.im_end = size - 2;
  head.codebook_size = std::max(1, (head.semantic_end - head.semantic_begin) * 3 / 4);
  return head;
}

TEST_F(CudaDrawTest, TokensEqualTheCpu) {
  for (const bool semantic : {true, false})
    for (const int64_t vocabulary : {17, 40, 1025, 4097, 7000})
      for (unsigned round = 0; round < 6; ++round) {
        Batch batch(60, vocabulary, 7 + 100 * round);
        const TokenHead head = head_for(vocabulary, semantic);
        batch.list_tokens(head, true);
        EXPECT_EQ(tokens(ctx(), batch, head, 0, 60, static_cast<int64_t>(round % 4)),
                  tokens(host_ctx(), batch, head, 0, 60))
            << vocabulary << (semantic ? " semantic" : " whole") << ", round " << round;
      }
}

TEST_F(CudaDrawTest, TokensFromTheWholeVocabularyEqualTheCpu) {
  Batch batch(40, 155'776, 3);
  const TokenHead head{
      .semantic_begin = 151'658, .semantic_end = 155'753, .im_end = 151'645, .codebook_size = 4096};
  batch.list_tokens(head, true);
  EXPECT_EQ(tokens(ctx(), batch, head, 0, 40), tokens(host_ctx(), batch, head, 0, 40));
}

// Few tokens, all of them recent: every second draw is repeated, whatever the first settings.
TEST_F(CudaDrawTest, RedrawsEqualTheCpu) {
  for (const int64_t vocabulary : {15, 4097, 6000}) {
    const TokenHead head = head_for(vocabulary, true);
    Batch batch(120, vocabulary, 5);
    std::vector<int32_t> once = tokens(host_ctx(), batch, head, 0, batch.rows());
    for (int64_t i = 0; i < batch.rows(); ++i) {
      DrawRow& row = batch.settings[static_cast<size_t>(i)];
      row.recent_tokens[i % kMostRecent] = once[static_cast<size_t>(i * kColumns)];
      row.recent = kMostRecent;
    }
    const std::vector<int32_t> want = tokens(host_ctx(), batch, head, 0, batch.rows());
    EXPECT_NE(want, once);
    EXPECT_EQ(tokens(ctx(), batch, head, 0, batch.rows()), want) << vocabulary;
  }
}

TEST_F(CudaDrawTest, ARowsSampleDependsOnThatRowAlone) {
  for (const int64_t vocabulary : {1024, 4097, 9000}) {
    Batch batch(256, vocabulary, 9);
    const std::vector<int32_t> together = codes(ctx(), batch, 1, 0, 256);
    for (const int64_t row : {0, 3, 77, 255}) {
      const std::vector<int32_t> alone = codes(ctx(), batch, 1, row, row + 1, row % 4);
      EXPECT_EQ(alone[2], together[static_cast<size_t>(row * kColumns + 2)]) << vocabulary << " row " << row;
    }
  }
}

TEST_F(CudaDrawTest, ARowWithoutCandidatesGivesMinusOneAndLeavesOthersAlone) {
  const float nan = std::numeric_limits<float>::quiet_NaN(),
              infinity = std::numeric_limits<float>::infinity();
  for (const int64_t vocabulary : {5, 1024, 9000}) {
    const TokenHead head = head_for(vocabulary, true);
    Batch batch(6, vocabulary, 2);
    const std::vector<int32_t> before = codes(host_ctx(), batch, 1, 0, 6);
    const auto row = [&](int64_t i) { return batch.logits.begin() + i * vocabulary; };
    *(row(1) + vocabulary / 2) = nan;
    *(row(2) + vocabulary - 1) = -nan;
    *row(3) = infinity;
    std::fill(row(4), row(5), -infinity);
    const std::vector<int32_t> got = codes(ctx(), batch, 1, 0, 6);
    for (size_t i = 0; i < 6; ++i)
      EXPECT_EQ(got[i * kColumns + 2], i >= 1 && i <= 4 ? -1 : before[i * kColumns + 2]) << i;
    const std::vector<int32_t> token = tokens(ctx(), batch, head, 0, 6);
    for (size_t i = 1; i <= 4; ++i) {
      EXPECT_EQ(token[i * kColumns], -1) << i;
      EXPECT_EQ(token[i * kColumns + 1], 0) << i;
    }
    EXPECT_GE(token[0], 0);
  }
}

// A NaN among the logits that are not allowed does not matter.
TEST_F(CudaDrawTest, RestrictedRowsReadOnlyTheirAllowedLogits) {
  const TokenHead head{.semantic_begin = 100, .semantic_end = 299, .im_end = 7, .codebook_size = 200};
  Batch batch(10, 1000, 4);
  for (int64_t i = 0; i < 10; ++i) {
    DrawRow& row = batch.settings[static_cast<size_t>(i)];
    row.restricted = 1;
    batch.logits[static_cast<size_t>(i * 1000 + 50)] = std::numeric_limits<float>::quiet_NaN();
    batch.logits[static_cast<size_t>(i * 1000 + 300)] = 1e30f;
  }
  EXPECT_EQ(tokens(ctx(), batch, head, 0, 10), tokens(host_ctx(), batch, head, 0, 10));
}

TEST_F(CudaDrawTest, CodesWithoutAListAreNotPenalised) {
  Batch batch(8, 300, 6);
  for (DrawRow& row : batch.settings) row.penalised_codes = 0;
  const auto without = [&](Context& on) {
    return draw(on, batch, 0, 8, 0, [&](TensorView logits, const DrawTable& table, TensorView frames) {
      draw_codes(on, logits, {table.rows, {}}, 1, frames);
    });
  };
  EXPECT_EQ(without(ctx()), without(host_ctx()));
}

}  // namespace
}  // namespace shoal::ops::cuda
