#include "ops/self_attention.h"

#include "ops/cuda/rows/segment_testing.h"
#include "ops/self_attention_testing.h"

namespace shoal::ops::cuda {
namespace {

using self_attention_testing::expect_oracle;

using Rows = std::vector<std::vector<float>>;

Rows random_rows(const std::vector<int32_t>& lengths, int64_t width) {
  Rows rows;
  for (const int32_t length : lengths)
    rows.push_back(random_values(length * width, static_cast<unsigned>(3 + length)));
  return rows;
}

class CudaSelfAttention : public SegmentTest {
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

TEST_F(CudaSelfAttention, MatchesTheOracleAtAwkwardSizes) {
  for (const auto& [heads, dim] : {std::pair<int64_t, int64_t>{1, 6},
                                   {3, 4},
                                   {3, 16},
                                   {2, 20},
                                   {1, 63},
                                   {2, 64},
                                   {12, 64},
                                   {2, 72},
                                   {1, 127},
                                   {2, 128}}) {
    SCOPED_TRACE(testing::Message() << heads << " x " << dim);
    const Utterances utterances({1, 2, 33, 64, 65, 128, 129, 300}, 2);
    const Rows qkv = random_rows(utterances.frames, 3 * heads * dim);
    const Rows out = run(utterances, qkv, heads, dim);
    for (size_t s = 0; s < qkv.size(); ++s) expect_oracle(qkv[s], out[s], heads, dim);
  }
}

TEST_F(CudaSelfAttention, AllPositionsOfPlbert) {
  const Utterances utterances({512}, 1);
  const Rows qkv = random_rows(utterances.frames, 3 * 12 * 64);
  expect_oracle(qkv[0], run(utterances, qkv, 12, 64)[0], 12, 64);
}

TEST_F(CudaSelfAttention, ASegmentIsTheSameInAnyBatch) {
  const std::vector<int32_t> lengths = {1, 130, 31, 2, 257, 16, 17};
  for (const int64_t dim : {20, 64, 100}) {
    const Rows qkv = random_rows(lengths, 3 * 2 * dim);
    for (const int32_t gap : {0, 5}) {
      const Rows batch = run(Utterances(lengths, gap), qkv, 2, dim);
      for (size_t s = 0; s < qkv.size(); ++s)
        expect_same_bits(batch[s], run(Utterances({lengths[s]}, gap), {qkv[s]}, 2, dim)[0]);
    }
  }
}

TEST_F(CudaSelfAttention, WritesSixteenBits) {
  const Utterances utterances({40, 70}, 3);
  for (const int64_t dim : {6, 64}) {
    const Rows qkv = random_rows(utterances.frames, 3 * 2 * dim), wide = run(utterances, qkv, 2, dim);
    for (const DType dtype : {DType::bf16, DType::f16}) {
      const Rows narrow = run(utterances, qkv, 2, dim, dtype);
      for (size_t s = 0; s < qkv.size(); ++s) expect_same_bits(narrow[s], rounded_to(wide[s], dtype));
    }
  }
}

TEST_F(CudaSelfAttention, RefusesHeadsThatAreTooWide) {
  const Utterances utterances({4}, 0);
  EXPECT_THROW(run(utterances, random_rows(utterances.frames, 3 * 129), 1, 129), Error);
}

}  // namespace
}  // namespace shoal::ops::cuda
