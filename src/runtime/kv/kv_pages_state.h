// What KvPages and its SequencePages share.
#pragma once

#include <vector>

#include "runtime/kv/kv_pages.h"
#include "runtime/kv/page_pool.h"

namespace shoal::runtime {

struct KvPages::State {
  explicit State(const Options& options) : pool(options) {}

  PagePool pool;
  std::vector<const SequencePages*>
      sequences;  // that hold pages here; the invariants are checked against them
};

}  // namespace shoal::runtime
