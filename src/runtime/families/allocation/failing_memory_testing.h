// Replaces operator new and aligned_alloc of the program that links it; they fail where a test asks for it.
#pragma once

#include <cstdint>

namespace shoal::testing {

// The n-th allocation from now on fails (n >= 1), and later ones until `count` have failed. Allocations of
// threads that spare themselves are neither counted nor failed.
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
// Within one of those allocations may fail again.
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
