#include "ops/self_attention.h"

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

Rows run(Context& ctx, const Utterances& utterances, const Rows& qkv, int64_t heads, int64_t dim) {
  const Segments segments = utterances.segments();
  const int64_t rows = segments.total_rows(), width = heads * dim;
  std::vector<float> in = laid_out(qkv, segments, 3 * width, kNan);
  std::vector<float> out(static_cast<size_t>(rows * width), kNan);
  self_attention(ctx, view_of(in, {rows, 3 * width}), heads, segments, view_of(out, {rows, width}));
  return taken_out(out, segments, width);
}

class SelfAttentionTest : public IsaTest {};

TEST_P(SelfAttentionTest, MatchesTheOracleAtAwkwardSizes) {
  for (const auto& [heads, dim] : {std::pair<int64_t, int64_t>{1, 6}, {3, 16}, {2, 20}, {2, 64}}) {
    const Utterances utterances({1, 2, 33, 128, 129, 300}, 2);
    const Rows qkv = random_qkv(utterances.frames, 3 * heads * dim);
    const Rows out = run(ctx_, utterances, qkv, heads, dim);
    for (size_t s = 0; s < qkv.size(); ++s) expect_oracle(qkv[s], out[s], heads, dim);
  }
}

TEST_P(SelfAttentionTest, ASegmentIsTheSameInAnyBatchAndTeam) {
  const std::vector<int32_t> lengths = {1, 130, 31, 2, 257};
  const Rows qkv = random_qkv(lengths, 3 * 2 * 20);
  Rows alone;
  for (size_t s = 0; s < qkv.size(); ++s)
    alone.push_back(run(ctx_, Utterances({lengths[s]}, 0), {qkv[s]}, 2, 20)[0]);
  for (const int threads : {1, 3})
    for (const int32_t gap : {0, 5}) {
      ThreadTeam team(threads);
      Context ctx = ctx_;
      ctx.team = &team;
      const Rows batch = run(ctx, Utterances(lengths, gap), qkv, 2, 20);
      for (size_t s = 0; s < qkv.size(); ++s) expect_same_bits(batch[s], alone[s]);
    }
}

TEST_P(SelfAttentionTest, HasTheSameBitsOnEveryInstructionSet) {
  const Utterances utterances({40, 150}, 1);
  const Rows qkv = random_qkv(utterances.frames, 3 * 2 * 24);
  const Rows own = run(ctx_, utterances, qkv, 2, 24);
  set_cpu_isa(CpuIsa::portable);
  const Rows plain = run(ctx_, utterances, qkv, 2, 24);
  for (size_t s = 0; s < qkv.size(); ++s) expect_same_bits(own[s], plain[s]);
}

INSTANTIATE_TEST_SUITE_P(Cpu, SelfAttentionTest, every_isa(), name_of_isa);

class SelfAttentionShapes : public testing::Test, protected MatrixFixture {};

TEST_F(SelfAttentionShapes, MismatchedShapesAreNamed) {
  std::vector<float> qkv(4 * 12), out(4 * 4);
  const Utterances utterances({4}, 0);
  const auto attend = [&](int64_t heads, Shape in, Shape to) {
    self_attention(ctx_, view_of(qkv, in), heads, utterances.segments(), view_of(out, to));
  };
  attend(2, {4, 12}, {4, 4});
  EXPECT_THROW(attend(3, {4, 12}, {4, 4}), Error);
  EXPECT_THROW(attend(2, {4, 12}, {2, 8}), Error);
  EXPECT_THROW(attend(2, {2, 24}, {4, 4}), Error);
}

}  // namespace
}  // namespace shoal::ops
