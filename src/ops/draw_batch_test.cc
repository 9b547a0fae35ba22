// Batches of all kinds: for equal logits every machine samples the same as the CPU's portable kernels.
#include "ops/draw_testing.h"

namespace shoal::ops {
namespace {

constexpr int64_t kCodebooks = 3, kMost = 16, kColumns = 1 + kCodebooks;

// A batch of rows of all kinds, and the lists that go with it.
struct DrawnBatch {
  DrawnBatch(int64_t rows, int64_t row_vocabulary, unsigned seed)
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

class DrawBatch : public DrawMachine {
 protected:
  // The frames that rows [begin, end) of the batch draw, with the logits `gap` values apart.
  template <typename Draw>
  std::vector<int32_t> draw(const DrawnBatch& batch, int64_t begin, int64_t end, int64_t gap, Draw call) {
    const int64_t rows = end - begin, width = batch.vocabulary + gap;
    std::vector<float> spread(static_cast<size_t>(rows * width), 1e9f);
    for (int64_t i = 0; i < rows; ++i)
      std::copy_n(batch.logits.begin() + (begin + i) * batch.vocabulary, batch.vocabulary,
                  spread.begin() + i * width);
    const auto first = static_cast<size_t>(begin), count = static_cast<size_t>(rows);
    const Tensor settings = put_settings(std::span(batch.settings).subspan(first, count));
    const Tensor codes = put(
        std::span<const int32_t>(batch.codes).subspan(first * kCodebooks * kMost, count * kCodebooks * kMost),
        {rows, kCodebooks, kMost});
    const Tensor frames = put(std::vector<int32_t>(count * kColumns, -7), {rows, kColumns});
    const Tensor logits = put(spread, {rows, width});
    call(logits.view().columns(0, batch.vocabulary), DrawTable{settings, codes}, frames);
    return get_ints(frames);
  }

  std::vector<int32_t> tokens(const DrawnBatch& batch, const TokenHead& head, int64_t begin, int64_t end,
                              int64_t gap = 0) {
    return draw(batch, begin, end, gap, [&](TensorView logits, const DrawTable& table, TensorView frames) {
      draw_tokens(ctx(), logits, table, head, frames);
    });
  }
  std::vector<int32_t> codes(const DrawnBatch& batch, int64_t codebook, int64_t begin, int64_t end,
                             int64_t gap = 0) {
    return draw(batch, begin, end, gap, [&](TensorView logits, const DrawTable& table, TensorView frames) {
      draw_codes(ctx(), logits, table, codebook, frames);
    });
  }
  // The portable kernels', of all rows.
  std::vector<int32_t> wanted_tokens(const DrawnBatch& batch, const TokenHead& head) {
    return on_portable_cpu([&] { return tokens(batch, head, 0, batch.rows()); });
  }
  std::vector<int32_t> wanted_codes(const DrawnBatch& batch, int64_t codebook) {
    return on_portable_cpu([&] { return codes(batch, codebook, 0, batch.rows()); });
  }
};

TEST_P(DrawBatch, CodesEqualThePortableKernels) {
  for (const int64_t vocabulary : {1, 5, 17, 127, 1024, 2560, 2561, 4097, 5120, 5121, 32'000})
    for (unsigned round = 0; round < (vocabulary < 10'000 ? 6u : 2u); ++round) {
      DrawnBatch batch(60, vocabulary, 1 + 100 * round);
      const int64_t codebook = 1 + round % 2, gap = static_cast<int64_t>(round % 4);
      EXPECT_EQ(codes(batch, codebook, 0, 60, gap), wanted_codes(batch, codebook))
          << vocabulary << " round " << round;
    }
}

TEST_P(DrawBatch, CodesFromTheWholeVocabularyEqualThePortableKernels) {
  DrawnBatch batch(40, 155'776, 1);
  EXPECT_EQ(codes(batch, 2, 0, 40), wanted_codes(batch, 2));
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

TEST_P(DrawBatch, TokensEqualThePortableKernels) {
  for (const bool semantic : {true, false})
    for (const int64_t vocabulary : {17, 40, 1025, 4097, 7000})
      for (unsigned round = 0; round < 6; ++round) {
        DrawnBatch batch(60, vocabulary, 7 + 100 * round);
        const TokenHead head = head_for(vocabulary, semantic);
        batch.list_tokens(head, true);
        EXPECT_EQ(tokens(batch, head, 0, 60, static_cast<int64_t>(round % 4)), wanted_tokens(batch, head))
            << vocabulary << (semantic ? " semantic" : " whole") << ", round " << round;
      }
}

TEST_P(DrawBatch, TokensFromTheWholeVocabularyEqualThePortableKernels) {
  DrawnBatch batch(40, 155'776, 3);
  const TokenHead head{
      .semantic_begin = 151'658, .semantic_end = 155'753, .im_end = 151'645, .codebook_size = 4096};
  batch.list_tokens(head, true);
  EXPECT_EQ(tokens(batch, head, 0, 40), wanted_tokens(batch, head));
}

// Few tokens, all of them recent: every second draw is repeated, whatever the first settings.
TEST_P(DrawBatch, RedrawsEqualThePortableKernels) {
  for (const int64_t vocabulary : {15, 4097, 6000}) {
    const TokenHead head = head_for(vocabulary, true);
    DrawnBatch batch(120, vocabulary, 5);
    std::vector<int32_t> once = wanted_tokens(batch, head);
    for (int64_t i = 0; i < batch.rows(); ++i) {
      DrawRow& row = batch.settings[static_cast<size_t>(i)];
      row.recent_tokens[i % kMostRecent] = once[static_cast<size_t>(i * kColumns)];
      row.recent = kMostRecent;
    }
    const std::vector<int32_t> want = wanted_tokens(batch, head);
    EXPECT_NE(want, once);
    EXPECT_EQ(tokens(batch, head, 0, batch.rows()), want) << vocabulary;
  }
}

TEST_P(DrawBatch, ARowsSampleDependsOnThatRowAlone) {
  for (const int64_t vocabulary : {1024, 4097, 9000}) {
    DrawnBatch batch(256, vocabulary, 9);
    const std::vector<int32_t> together = codes(batch, 1, 0, 256);
    for (const int64_t row : {0, 3, 77, 255}) {
      const std::vector<int32_t> alone = codes(batch, 1, row, row + 1, row % 4);
      EXPECT_EQ(alone[2], together[static_cast<size_t>(row * kColumns + 2)]) << vocabulary << " row " << row;
    }
  }
}

// On a CPU it is an error of the whole call.
TEST_P(DrawBatch, ARowWithoutCandidatesGivesMinusOneAndLeavesOthersAlone) {
  const float nan = std::numeric_limits<float>::quiet_NaN(),
              infinity = std::numeric_limits<float>::infinity();
  for (const int64_t vocabulary : {5, 1024, 9000}) {
    const TokenHead head = head_for(vocabulary, true);
    DrawnBatch batch(6, vocabulary, 2);
    const std::vector<int32_t> before = wanted_codes(batch, 1);
    const auto row = [&](int64_t i) { return batch.logits.begin() + i * vocabulary; };
    *(row(1) + vocabulary / 2) = nan;
    *(row(2) + vocabulary - 1) = -nan;
    *row(3) = infinity;
    std::fill(row(4), row(5), -infinity);
    if (!on_gpu()) {
      for (int64_t i = 1; i <= 4; ++i) {
        EXPECT_THROW(codes(batch, 1, i, i + 1), Error) << i;
        EXPECT_THROW(tokens(batch, head, i, i + 1), Error) << i;
      }
      EXPECT_THROW(codes(batch, 1, 0, 6), Error);
      EXPECT_EQ(codes(batch, 1, 0, 1)[2], before[2]);
      EXPECT_EQ(codes(batch, 1, 5, 6)[2], before[5 * kColumns + 2]);
      continue;
    }
    const std::vector<int32_t> got = codes(batch, 1, 0, 6);
    for (size_t i = 0; i < 6; ++i)
      EXPECT_EQ(got[i * kColumns + 2], i >= 1 && i <= 4 ? -1 : before[i * kColumns + 2]) << i;
    const std::vector<int32_t> token = tokens(batch, head, 0, 6);
    for (size_t i = 1; i <= 4; ++i) {
      EXPECT_EQ(token[i * kColumns], -1) << i;
      EXPECT_EQ(token[i * kColumns + 1], 0) << i;
    }
    EXPECT_GE(token[0], 0);
  }
}

// A NaN among the logits that are not allowed does not matter.
TEST_P(DrawBatch, RestrictedRowsReadOnlyTheirAllowedLogits) {
  const TokenHead head{.semantic_begin = 100, .semantic_end = 299, .im_end = 7, .codebook_size = 200};
  DrawnBatch batch(10, 1000, 4);
  for (int64_t i = 0; i < 10; ++i) {
    DrawRow& row = batch.settings[static_cast<size_t>(i)];
    row.restricted = 1;
    batch.logits[static_cast<size_t>(i * 1000 + 50)] = std::numeric_limits<float>::quiet_NaN();
    batch.logits[static_cast<size_t>(i * 1000 + 300)] = 1e30f;
  }
  EXPECT_EQ(tokens(batch, head, 0, 10), wanted_tokens(batch, head));
}

TEST_P(DrawBatch, CodesWithoutAListAreNotPenalised) {
  DrawnBatch batch(8, 300, 6);
  for (DrawRow& row : batch.settings) row.penalised_codes = 0;
  const auto without = [&] {
    return draw(batch, 0, 8, 0, [&](TensorView logits, const DrawTable& table, TensorView frames) {
      draw_codes(ctx(), logits, {table.rows, {}}, 1, frames);
    });
  };
  EXPECT_EQ(without(), on_portable_cpu(without));
}

INSTANTIATE_TEST_SUITE_P(Machine, DrawBatch, testing::ValuesIn(every_machine()), name_of_machine);

}  // namespace
}  // namespace shoal::ops
