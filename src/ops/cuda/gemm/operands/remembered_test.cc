#include "ops/cuda/gemm/operands/remembered.h"

#include <gtest/gtest.h>
#include <vector>

namespace shoal::ops::cuda {
namespace {

// One size, and each that differs from it in one value.
std::vector<ProductSize> neighbours() {
  const ProductSize size{.matrix = {1024, 1, 2048, false}, .rows = 64, .machine = {132, 227 << 10, true, 90}};
  std::vector<ProductSize> all(9, size);
  all[1].matrix.outputs = 2048;
  all[2].matrix.taps = 2;
  all[3].matrix.depth = 1024;
  all[4].matrix.paired = true;
  all[5].rows = 65;
  all[6].machine.multiprocessors = 64;
  all[7].machine.shared_bytes = 99 << 10;
  all[8].machine.wgmma = false;
  all.push_back(size);
  all.back().machine.architecture = 80;
  return all;
}

TEST(Remembered, AChoiceIsMadeOnceForASize) {
  Remembered<int> remembered;
  int made = 0;
  const ProductSize size = neighbours()[0];
  for (int i = 0; i < 3; ++i) EXPECT_EQ(remembered.of(size, [&] { return 7 + made++; }), 7);
  EXPECT_EQ(made, 1);
}

TEST(Remembered, SizesThatDifferInAnyValueHaveTheirOwnChoices) {
  Remembered<size_t> remembered;
  const std::vector<ProductSize> sizes = neighbours();
  for (int round = 0; round < 3; ++round)
    for (size_t i = 0; i < sizes.size(); ++i) EXPECT_EQ(remembered.of(sizes[i], [&] { return i; }), i);
}

TEST(Remembered, MoreSizesThanPlacesTakeEachOthersPlaces) {
  constexpr auto kPlaces = static_cast<int>(Remembered<int64_t>::kPlaces);
  Remembered<int64_t> remembered;
  ProductSize size = neighbours()[0];
  int made = 0;
  for (int round = 0; round < 2; ++round) {
    for (size.rows = 1; size.rows <= 4 * kPlaces; ++size.rows)
      EXPECT_EQ(remembered.of(size, [&] { return ++made, size.rows; }), size.rows);
  }
  EXPECT_GE(made, 7 * kPlaces);
}

// The sizes of a model must not push each other out.
TEST(Remembered, TheSizesOfAModelMostlyHavePlacesOfTheirOwn) {
  Remembered<int> remembered;
  int made = 0;
  for (int round = 0; round < 2; ++round) {
    for (const int64_t outputs : {1024, 2048, 3072, 4096, 1536, 768, 384, 192}) {
      for (const int64_t rows : {1, 8, 64, 200, 256, 428, 856, 2048})
        remembered.of({{outputs, 1, 1024, false}, rows, {}}, [&] { return ++made; });
    }
  }
  EXPECT_LE(made, 64 + 16);
}

}  // namespace
}  // namespace shoal::ops::cuda
