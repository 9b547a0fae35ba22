// Every allocation is made to fail once.
#include <cstdlib>
#include <gtest/gtest.h>
#include <limits>
#include <new>

#include "base/error.h"
#include "runtime/kv/kv_pages.h"

namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
thread_local int64_t allocations_left = kNever;
thread_local int64_t live_allocations = 0;

}  // namespace

// Of the whole test program. Not inlined: g++ 12 with sanitizers takes free() for a mismatch otherwise.
[[gnu::noinline]] void* operator new(size_t bytes) {
  if (allocations_left != kNever && allocations_left-- == 0) throw std::bad_alloc();
  void* const memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  ++live_allocations;
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  if (memory == nullptr) return;
  --live_allocations;
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept { operator delete(memory); }

namespace shoal::runtime {
namespace {

constexpr KvPages::Options kOptions = {.pages = 12, .page_size = 3, .column_width = 1, .max_voices = 2};

// Runs `work` with allocation `nth` failing. False when it threw std::bad_alloc.
template <typename Work>
bool survives(int64_t nth, Work work) {
  allocations_left = nth;
  try {
    work();
    allocations_left = kNever;
    return true;
  } catch (const std::bad_alloc&) {
    allocations_left = kNever;
    return false;
  }
}

std::vector<int32_t> counting(int32_t columns) {
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < columns; ++i) ids.push_back(i);
  return ids;
}

TEST(KvPagesMemory, AFailedConstructionLeaksNothing) {
  const int64_t before = live_allocations;
  int64_t failures = 0;
  while (!survives(failures, [] { KvPages pages(kOptions); })) {
    EXPECT_EQ(live_allocations, before);
    ++failures;
    ASSERT_LT(failures, 100);
  }
  EXPECT_GT(failures, 5);
  EXPECT_EQ(live_allocations, before);
}

TEST(KvPagesMemory, ThePoolStaysConsistentWhicheverAllocationFails) {
  const std::vector<int32_t> prompt = counting(11), other = {0, 1, 2, 3, 9, 9, 9, 9};
  for (int64_t failures = 0;; ++failures) {
    ASSERT_LT(failures, 100);
    KvPages pages(kOptions);
    SequencePages running(pages, 1, prompt);
    ASSERT_TRUE(running.hold(11));
    running.publish(prompt, 11);
    pages.check_invariants();
    int64_t reached = 0;
    const bool done = survives(failures, [&] {
      SequencePages sequence(pages, 2, other);  // shares a page, copies a tail
      reached = 1;
      ASSERT_EQ(sequence.cached_columns(), 4);
      ASSERT_TRUE(sequence.hold(8));
      reached = 2;
      sequence.publish(other, 8);
      reached = 3;
      ASSERT_TRUE(running.hold(20));
      reached = 4;
      running = std::move(sequence);
      SequencePages third(pages, 3, other);
      reached = 5;
      third.release();
      pages.drop_cached();
    });
    ASSERT_NO_THROW(pages.check_invariants()) << "allocation " << failures << ", reached " << reached;
    running.release();
    ASSERT_NO_THROW(pages.check_invariants()) << "allocation " << failures << ", reached " << reached;
    EXPECT_EQ(pages.statistics().pages_used, 0);
    if (done) {
      EXPECT_GE(failures, 4) << "the two tables, the list of sequences, a longer table";
      return;
    }
  }
}

TEST(KvPagesMemory, HoldingWithinTheReservedTableAllocatesNothing) {
  KvPages pages(kOptions);
  const std::vector<int32_t> cached = counting(9), prompt = {7};
  {
    SequencePages sequence(pages, 1, cached);
    ASSERT_TRUE(sequence.hold(9));
    sequence.publish(cached, 9);
  }
  SequencePages sequence(pages, 2, prompt);
  sequence.reserve_table(36);
  EXPECT_TRUE(survives(0, [&] {
    for (int64_t columns = 1; columns <= 36; ++columns) ASSERT_TRUE(sequence.hold(columns));  // evicts
    ASSERT_FALSE(sequence.hold(37));
    sequence.publish(prompt, 1);
    sequence.release();
  }));
  pages.check_invariants();
}

}  // namespace
}  // namespace shoal::runtime
