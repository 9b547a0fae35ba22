#include "runtime/schedule/job_rules.h"

#include "base/error.h"

namespace shoal::runtime {

void check_limits(const ScheduleLimits& limits) {
  CHECK(limits.max_batch_size >= 1, "max_batch_size is ", limits.max_batch_size, ", expected at least 1");
  CHECK(limits.max_streams >= 1, "max_streams is ", limits.max_streams, ", expected at least 1");
  CHECK(limits.prefill_columns >= 1, "prefill_columns is ", limits.prefill_columns, ", expected at least 1");
  CHECK(limits.page_size >= 1, "page_size is ", limits.page_size, ", expected at least 1");
  CHECK(limits.pages_available >= 0, "pages_available is ", limits.pages_available, ", expected at least 0");
  CHECK(limits.batch_timeout_us >= 0, "batch_timeout_us is ", limits.batch_timeout_us,
        ", expected at least 0");
}

}  // namespace shoal::runtime
