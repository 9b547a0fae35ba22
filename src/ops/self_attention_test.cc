#include "ops/self_attention.h"

#include "ops/op_testing.h"
#include "ops/self_attention_testing.h"

namespace shoal::ops {
namespace {

using self_attention_testing::expect_oracle;

using Rows = std::vector<std::vector<float>>;

Rows random_qkv(const std::vector<int32_t>& lengths, int64_t width) {
  Rows rows;
  for (const int32_t length : lengths)
    rows.push_back(random_values(length * width, static_cast<unsigned>(3 + length)));
  return rows;
}

class SelfAttentionTest : public OpTest {
 protected:
  Rows run(const Utterances& utterances, const Rows& qkv, int64_t heads, int64_t dim,
           DType dtype = DType::f32) {
    const Segments segments = utterances.segments();
    const int64_t rows = segments.total_rows(), width = heads * dim;
    const Tensor in = put(laid_out(qkv, segments, 3 * width, kNan), {rows, 3 * width});
    const Tensor out = garbage({rows, width}, dtype);
    self_attention(ctx(), in, heads, placed(segments), out);
    return taken_out(get(out), segments, width);
  }
};

TEST_P(SelfAttentionTest, MatchesTheOracleAtAwkwardSizes) {
  for (const auto& [most_heads, dim] : {std::pair<int64_t, int64_t>{1, 6},
                                        {3, 4},
                                        {3, 16},
                                        {2, 20},
                                        {1, 63},
                                        {2, 64},
                                        {12, 64},
                                        {2, 72},
                                        {1, 127},
                                        {2, 128}}) {
    if (most_heads == 12 && !on_gpu()) continue;  // CPUs take head by head
    const int64_t heads = on_gpu() || dim <= 64 ? most_heads : 1;
    SCOPED_TRACE(testing::Message() << heads << " x " << dim);
    const Utterances utterances({1, 2, 33, 64, 65, 128, 129, 300}, 2);
    const Rows qkv = random_qkv(utterances.frames, 3 * heads * dim);
    const Rows out = run(utterances, qkv, heads, dim);
    for (size_t s = 0; s < qkv.size(); ++s) expect_oracle(qkv[s], out[s], heads, dim);
  }
}

TEST_P(SelfAttentionTest, AllPositionsOfPlbert) {
  const int64_t heads = on_gpu() ? 12 : 2;
  const Utterances utterances({512}, 1);
  const Rows qkv = random_qkv(utterances.frames, 3 * heads * 64);
  expect_oracle(qkv[0], run(utterances, qkv, heads, 64)[0], heads, 64);
}

TEST_P(SelfAttentionTest, ASegmentIsTheSameInAnyBatch) {
  const std::vector<int32_t> lengths = {1, 130, 31, 2, 257, 16, 17};
  for (const int64_t dim : {20, 64, 100}) {
    if (!on_gpu() && dim == 100) continue;  // CPUs have no kernels for ranges of widths
    const Rows qkv = random_qkv(lengths, 3 * 2 * dim);
    Rows alone;
    for (size_t s = 0; s < qkv.size(); ++s)
      alone.push_back(run(Utterances({lengths[s]}, 5), {qkv[s]}, 2, dim)[0]);
    for (const int32_t gap : {0, 5}) {
      const Rows batch = run(Utterances(lengths, gap), qkv, 2, dim);
      for (size_t s = 0; s < qkv.size(); ++s) expect_same_bits(batch[s], alone[s]);
    }
  }
}

// What the next product reads: 16 bits on a GPU alone.
TEST_P(SelfAttentionTest, WritesSixteenBitsOnAGpu) {
  const Utterances utterances({40, 70}, 3);
  for (const int64_t dim : {6, 64}) {
    const Rows qkv = random_qkv(utterances.frames, 3 * 2 * dim), wide = run(utterances, qkv, 2, dim);
    for (const DType dtype : {DType::bf16, DType::f16}) {
      if (!on_gpu()) {
        EXPECT_THROW(run(utterances, qkv, 2, dim, dtype), Error);
        continue;
      }
      const Rows narrow = run(utterances, qkv, 2, dim, dtype);
      for (size_t s = 0; s < qkv.size(); ++s) expect_same_bits(narrow[s], rounded_to(wide[s], dtype));
    }
  }
}

TEST_P(SelfAttentionTest, AGpuRefusesHeadsOfMoreThan128) {
  const Utterances utterances({4}, 0);
  const Rows qkv = random_qkv(utterances.frames, 3 * 129);
  if (on_gpu()) {
    EXPECT_THROW(run(utterances, qkv, 1, 129), Error);
  } else {
    expect_oracle(qkv[0], run(utterances, qkv, 1, 129)[0], 1, 129);
  }
}

TEST_P(SelfAttentionTest, MismatchedShapesAreNamed) {
  const Utterances utterances({4}, 0);
  const auto attend = [&](int64_t heads, Shape in, Shape to) {
    const Tensor qkv = put(std::vector<float>(4 * 12), in), out = garbage(to);
    self_attention(ctx(), qkv, heads, placed(utterances.segments()), out);
  };
  attend(2, {4, 12}, {4, 4});
  EXPECT_THROW(attend(3, {4, 12}, {4, 4}), Error);
  EXPECT_THROW(attend(2, {4, 12}, {2, 8}), Error);
  EXPECT_THROW(attend(2, {2, 24}, {4, 4}), Error);
}

INSTANTIATE_TEST_SUITE_P(Machine, SelfAttentionTest, testing::ValuesIn(every_machine()), name_of_machine);

class SelfAttentionOnCpus : public SelfAttentionTest {};

TEST_P(SelfAttentionOnCpus, ASegmentIsTheSameInAnyTeam) {
  const std::vector<int32_t> lengths = {1, 130, 31, 2, 257};
  const Rows qkv = random_qkv(lengths, 3 * 2 * 20);
  const Rows two = run(Utterances(lengths, 0), qkv, 2, 20);
  for (const int threads : {1, 3})
    for (const int32_t gap : {0, 5}) {
      ThreadTeam team(threads);
      ctx().team = &team;
      const Rows batch = run(Utterances(lengths, gap), qkv, 2, 20);
      for (size_t s = 0; s < qkv.size(); ++s) expect_same_bits(batch[s], two[s]);
    }
}

TEST_P(SelfAttentionOnCpus, HasTheSameBitsOnEveryInstructionSet) {
  const Utterances utterances({40, 150}, 1);
  const Rows qkv = random_qkv(utterances.frames, 3 * 2 * 24);
  const Rows own = run(utterances, qkv, 2, 24);
  set_cpu_isa(CpuIsa::portable);
  const Rows plain = run(utterances, qkv, 2, 24);
  for (size_t s = 0; s < qkv.size(); ++s) expect_same_bits(own[s], plain[s]);
}

INSTANTIATE_TEST_SUITE_P(Cpu, SelfAttentionOnCpus, testing::ValuesIn(every_cpu()), name_of_machine);

}  // namespace
}  // namespace shoal::ops
