#include "ops/vector_quantise.h"

#include <cmath>
#include <limits>

#include "ops/rows_testing.h"
#include "ops/vector_testing.h"

namespace shoal::ops {
namespace {

class NearestCode : public RowsTestOf<OpTest> {
 protected:
  std::vector<int32_t> nearest(const std::vector<float>& x, const std::vector<float>& directions,
                               int64_t dim) {
    const int64_t rows = std::ssize(x) / dim, entries = std::ssize(directions) / dim;
    const Tensor codes = put(std::vector<int32_t>(static_cast<size_t>(rows), 77), {rows});
    nearest_code(ctx(), put(x, {rows, dim}), put(directions, {entries, dim}), codes);
    return get_ints(codes);
  }
};

double product_of_rows(const std::vector<float>& a, int64_t row, const std::vector<float>& b, int64_t other,
                       int64_t dim) {
  double sum = 0;
  for (int64_t d = 0; d < dim; ++d)
    sum +=
        static_cast<double>(a[static_cast<size_t>(row * dim + d)]) * b[static_cast<size_t>(other * dim + d)];
  return sum;
}

TEST_P(NearestCode, IsTheFirstOfTheLargestCosines) {
  for (const int64_t entries : {1, 5, 16, 1024, 4099})
    for (const int64_t dim : {2, 8, 19}) {
      constexpr int64_t kRows = 70;
      std::vector<float> x = random_values(kRows * dim, 1, 3), directions = random_values(entries * dim, 2);
      for (int64_t e = 0; e < entries; ++e) {
        const double norm = product_of_rows(directions, e, directions, e, dim);
        for (int64_t d = 0; d < dim; ++d)
          directions[static_cast<size_t>(e * dim + d)] /= static_cast<float>(std::sqrt(norm));
      }
      std::fill_n(x.begin(), dim, 0.0f);  // ties with everything
      const std::vector<int32_t> codes = nearest(x, directions, dim);
      EXPECT_EQ(codes[0], 0);
      for (int64_t row = 1; row < kRows; ++row) {
        const int32_t code = codes[static_cast<size_t>(row)];
        ASSERT_GE(code, 0);
        ASSERT_LT(code, entries);
        const double length = product_of_rows(x, row, x, row, dim),
                     best = product_of_rows(x, row, directions, code, dim);
        for (int64_t e = 0; e < entries; ++e)  // rounding: dim products of total length |x|
          ASSERT_LE(product_of_rows(x, row, directions, e, dim),
                    best + 2 * static_cast<double>(dim) * kUnit * std::sqrt(length))
              << e << " " << code;
      }
    }
}

TEST_P(NearestCode, ExactTiesGoToTheFirstEntry) {
  constexpr int64_t kEntries = 100;
  std::vector<float> directions;
  for (int64_t e = 0; e < kEntries; ++e)
    for (int d = 0; d < 8; ++d) directions.push_back(e % 30 == 17 ? 0.125f * static_cast<float>(d) : 0.0f);
  EXPECT_EQ(nearest({1, 2, 3, 4, 5, 6, 7, 8}, directions, 8), std::vector<int32_t>{17});
}

TEST_P(NearestCode, CodesGoToAColumn) {
  const Tensor x = put(std::vector<float>{1, 0, 0, 1, -1, 0}, {3, 2}),
               directions = put(std::vector<float>{0, 1, 1, 0, -1, 0}, {3, 2});
  const Tensor codes = put(std::vector<int32_t>(9, 77), {3, 3});
  nearest_code(ctx(), x, directions, codes.view().columns(1, 3));
  EXPECT_EQ(get_ints(codes), (std::vector<int32_t>{77, 1, 77, 77, 0, 77, 77, 2, 77}));
}

TEST_P(NearestCode, EqualsThatOfThePortableKernels) {
  for (const int64_t entries : {1, 5, 255, 1024, 4099})
    for (const int64_t dim : {1, 2, 8, 19, 64})
      for (const int64_t rows : {1, 8, 77}) {
        std::vector<float> x = random_values(rows * dim, 1, 3), directions = random_values(entries * dim, 2);
        for (int64_t e = 2; e < entries; e += 3)  // doubles of earlier entries: ties
          std::copy_n(directions.begin() + (e - 2) * dim, dim, directions.begin() + e * dim);
        std::fill_n(x.begin() + (rows - 1) * dim, dim, 0.0f);  // ties with everything
        if (rows > 2) x[static_cast<size_t>(dim)] = std::numeric_limits<float>::quiet_NaN();
        const std::vector<int32_t> want = on_portable_cpu([&] { return nearest(x, directions, dim); });
        const Tensor codes = put(std::vector<int32_t>(static_cast<size_t>(3 * rows), 77), {rows, 3});
        const Strided apart = strided(x, rows, dim, 1, 2);
        nearest_code(ctx(), apart.view, put(directions, {entries, dim}), codes.view().columns(1, 3));
        EXPECT_EQ(get_ints(codes.view().columns(1, 2)), want) << entries << " x " << dim;
        EXPECT_EQ(get_ints(codes.view().columns(2, 3)), std::vector<int32_t>(static_cast<size_t>(rows), 77));
      }
}

INSTANTIATE_TEST_SUITE_P(Machine, NearestCode, testing::ValuesIn(every_machine()), name_of_machine);

}  // namespace
}  // namespace shoal::ops
