// operator new and aligned_alloc of the program that this is linked into, made to fail where a test wants it.
#pragma once

#include <cstdint>

namespace shoal::testing {

// The n-th allocation from now on fails (n >= 1), and those after it until `count` have failed. Threads that
// spare themselves are neither counted nor failed.
void fail_allocations(int64_t n, int64_t count);
void fail_no_allocations();
// Since the last of these two calls.
int64_t allocations_counted();
int64_t allocations_failed();

// This thread's allocations succeed while one of these lives.
class Spared {
 public:
  Spared();
  ~Spared();
  Spared(const Spared&) = delete;
  Spared& operator=(const Spared&) = delete;
};
// And within one of those may fail all the same.
class NotSpared {
 public:
  NotSpared();
  ~NotSpared();
  NotSpared(const NotSpared&) = delete;
  NotSpared& operator=(const NotSpared&) = delete;

 private:
  int before_;
};

}  // namespace shoal::testing
